"""autocast and GradScaler without PyTorch: contexts, threads, gradients, scales. tests/peers/torch_autocast_test.py has PyTorch beside it."""

import threading

import pytest

import lazuli as lz


def dtype_of_product():
    return (lz.ones(2, 3) @ lz.ones(3, 2)).dtype


def test_products_are_narrow_inside_and_nowhere_else():
    assert dtype_of_product() == lz.float32
    with lz.autocast("cpu"):
        assert dtype_of_product() == lz.bfloat16
        with lz.autocast("cpu", dtype=lz.float16):
            assert dtype_of_product() == lz.float16
        with lz.autocast("cpu", enabled=False):
            assert dtype_of_product() == lz.float32
        assert dtype_of_product() == lz.bfloat16
    assert dtype_of_product() == lz.float32


def test_an_error_inside_ends_the_context():
    with pytest.raises(ZeroDivisionError), lz.autocast("cpu"):
        raise ZeroDivisionError
    assert dtype_of_product() == lz.float32
    context = lz.autocast("cpu")
    with context, context:
        assert dtype_of_product() == lz.bfloat16
    assert dtype_of_product() == lz.float32


def test_a_decorated_function_and_other_threads():
    assert lz.autocast("cpu")(dtype_of_product)() == lz.bfloat16
    found = []
    with lz.autocast("cpu"):
        thread = threading.Thread(target=lambda: found.append(dtype_of_product()))
        thread.start()
        thread.join()
    assert found == [lz.float32]


def test_values_are_those_of_narrow_arguments_and_gradients_keep_their_dtype():
    x, w = lz.rand(4, 8), lz.rand(3, 8, requires_grad=True)
    with lz.autocast("cpu"):
        y = lz.nn.functional.linear(x, w)
        loss = lz.nn.functional.mse_loss(y, lz.zeros(4, 3))
    assert loss.dtype == lz.float32
    assert y.tolist() == lz.nn.functional.linear(x.bfloat16(), w.bfloat16()).tolist()
    loss.backward()
    assert w.grad.dtype == lz.float32
    expected = lz.autograd.grad(lz.nn.functional.mse_loss(lz.nn.functional.linear(x.bfloat16(), w.bfloat16()).float(), lz.zeros(4, 3)), w)
    assert w.grad.tolist() == expected[0].tolist()


def test_lines_of_errors_are_the_callers():
    with lz.autocast("cpu"), pytest.raises(lz.Error, match=r"matmul: inner dimensions differ: bf16\[2,3\] x bf16\[2,3\] \(autocast_test.py"):
        lz.ones(2, 3) @ lz.ones(2, 3)


def test_settings_as_functions():
    assert not lz.is_autocast_enabled("cpu") and lz.get_autocast_dtype("cpu") == lz.bfloat16 and lz.get_autocast_gpu_dtype() == lz.float16
    lz.set_autocast_enabled("cpu", True)
    try:
        assert lz.is_autocast_cpu_enabled() and dtype_of_product() == lz.bfloat16 and not lz.is_autocast_enabled()
        lz.set_autocast_cpu_dtype(lz.float16)
        assert dtype_of_product() == lz.float16 and lz.get_autocast_cpu_dtype() == lz.float16
    finally:
        lz.set_autocast_enabled("cpu", False)
        lz.set_autocast_dtype("cpu", lz.bfloat16)
    assert dtype_of_product() == lz.float32 and lz.amp.is_autocast_available("cpu") and not lz.amp.is_autocast_available("cuda")


def test_what_is_off_says_so():
    with pytest.warns(UserWarning, match="autocast: there is no GPU, so it is off"), lz.autocast("cuda"):
        assert dtype_of_product() == lz.float32
    with pytest.warns(UserWarning, match="autocast: only to bfloat16 or float16, not float64, so it is off"), lz.autocast("cpu", dtype=lz.float64):
        assert dtype_of_product() == lz.float32
    with pytest.warns(UserWarning, match="there is no GPU"), lz.cuda.amp.autocast():
        assert dtype_of_product() == lz.float32
    with lz.cpu.amp.autocast():
        assert dtype_of_product() == lz.bfloat16
    with pytest.raises(RuntimeError, match="'tpx' is not a type of devices"):
        lz.autocast("tpx")
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`, got: `int`"):
        lz.autocast(3)


def test_a_checkpoint_runs_again_under_the_same_autocast():
    seen = []

    def function(x):
        seen.append((x @ x).dtype)
        return (x @ x).sum()

    x = lz.rand(3, 3, requires_grad=True)
    with lz.autocast("cpu"):
        loss = lz.utils.checkpoint.checkpoint(function, x)
    loss.backward()
    assert x.grad.dtype == lz.float32 and x.grad.isfinite().all().item()
    assert seen == [lz.bfloat16, lz.bfloat16]


def test_custom_functions_cast_and_remember():
    class Square(lz.autograd.Function):
        @staticmethod
        @lz.amp.custom_fwd(device_type="cpu", cast_inputs=lz.float32)
        def forward(ctx, x):
            ctx.save_for_backward(x)
            assert x.dtype == lz.float32 and not lz.is_autocast_enabled("cpu")
            return x @ x

        @staticmethod
        @lz.amp.custom_bwd(device_type="cpu")
        def backward(ctx, dy):
            assert not lz.is_autocast_enabled("cpu")
            x, = ctx.saved_tensors
            return dy @ x.T + x.T @ dy

    x = lz.rand(2, 2).bfloat16().requires_grad_()
    with lz.autocast("cpu"):
        y = Square.apply(x)
        assert y.dtype == lz.float32
        y.sum().backward()
    assert x.grad.dtype == lz.bfloat16


def test_a_scaler_leaves_out_steps_that_are_not_finite():
    p = lz.nn.Parameter(lz.ones(2))
    opt, scaler = lz.optim.SGD([p], lr=0.5), lz.amp.GradScaler("cpu", init_scale=2.0**40, growth_interval=2)
    with lz.autocast("cpu", dtype=lz.float16):
        loss = (p @ p)
    scaler.scale(loss).backward()  # infinite in float16
    scaler.step(opt)
    scaler.update()
    assert p.tolist() == [1, 1] and scaler.get_scale() == 2.0**39
    scaler.update(8.0)
    for _ in range(2):
        opt.zero_grad()
        scaler.scale((p * p).sum()).backward()
        scaler.unscale_(opt)
        assert p.grad.tolist() == (2 * p).tolist()
        scaler.step(opt)
        scaler.update()
    assert p.tolist() == [0, 0] and scaler.get_scale() == 16
