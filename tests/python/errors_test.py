"""Errors are Python's own types and name the line of the user's program."""

import copy
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import lazuli as lz


def here(exception):
    """The line of this file that the traceback ends in."""
    return f"(errors_test.py:{exception.traceback[-1].lineno + 1})"


def test_shapes_that_do_not_fit_are_value_errors():
    x, y = lz.ones(8, 16), lz.ones(4, 4)
    with pytest.raises(ValueError) as error:
        lz.matmul(x, y)
    assert str(error.value) == f"matmul: inner dimensions differ: f32[8,16] x f32[4,4] {here(error)}"
    with pytest.raises(ValueError, match="matmul: inner"):
        x @ y


# The builtin class that torch raises, and the one that fits best.
@pytest.mark.parametrize("call, kind, builtins", [
    (lambda x: x + lz.ones(4), lz.InvalidArgumentError, (ValueError,)), (lambda x: x.sum(3), lz.OutOfRangeError, (IndexError,)),
    (lambda x: lz.ones(0).max(), lz.OutOfRangeError, (IndexError,)), (lambda x: x & 1, lz.WrongTypeError, (NotImplementedError, TypeError, ValueError)),
    (lambda x: lz.tensor([1]).mean(), lz.WrongTypeError, (TypeError,)), (lambda x: lz.exp(3), lz.WrongArgumentError, (TypeError,)),
    (lambda x: lz.exp(), lz.WrongArgumentError, (TypeError,)), (lambda x: x.size("a"), lz.WrongArgumentError, (TypeError,)),
    (lambda x: lz.tensor([True]) - lz.tensor([True]), lz.WrongTypeError, (TypeError,)), (lambda x: -lz.tensor([True]), lz.WrongTypeError, (TypeError,)),
    (lambda x: lz.tensor([1j]) < 1, lz.WrongTypeError, (NotImplementedError,)), (lambda x: lz.arange(5, 0), lz.InvalidArgumentError, (ValueError,)),
    (lambda x: lz.tensor([[1], [2, 3]]), lz.InvalidArgumentError, (ValueError,)), (lambda x: x.backward(), lz.Error, ()),
    (lambda x: lz.nn.functional.mse_loss(x, x, reduction="most"), lz.InvalidArgumentError, (ValueError,)),
    (lambda x: lz.load("/nowhere.safetensors"), lz.NotFoundError, (FileNotFoundError,))])
def test_errors_are_of_the_library_and_of_python(call, kind, builtins):
    with pytest.raises(lz.Error) as error:
        call(lz.ones(2))
    assert type(error.value) is kind and isinstance(error.value, (RuntimeError, *builtins)) and len(str(error.value)) > 9
    assert all(isinstance(error.value, builtin) for builtin in (RuntimeError, *builtins))


@pytest.mark.parametrize("op, call", [
    ("matmul", lambda x: lz.matmul(x, x)), ("sum", lambda x: x.sum(3)), ("cat", lambda x: lz.cat([x, x[0]])),
    ("index_select", lambda x: lz.index_select(x, 0, lz.tensor([5])).numpy()),
    ("cross_entropy", lambda x: lz.nn.functional.cross_entropy(x, x[:1]))])
def test_op_and_place_are_attributes(op, call):
    with pytest.raises(lz.Error) as error:
        call(lz.ones(2, 3))
    raised = error.value
    assert raised.op == op and str(raised).startswith(f"{op}: ")
    assert raised.place.startswith("errors_test.py:") and str(raised).endswith(f"({raised.place})")
    assert lz.Error("mine").op == lz.Error.place == ""


def test_dims_out_of_range_are_index_errors():
    with pytest.raises(IndexError) as error:
        lz.ones(2).sum(3)
    assert str(error.value).startswith("sum: dim 3 is out of range for rank 1") and here(error) in str(error.value)


def test_backward_twice_is_a_runtime_error():
    x = lz.tensor([1.0], requires_grad=True)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match=r"errors_test.py:\d+"):
        y.backward()


def test_a_layer_names_the_line_that_called_it():
    layer = lz.nn.Linear(4, 2)
    with pytest.raises(ValueError) as error:
        layer(lz.ones(3, 5))
    assert "linear: the last dim of x must be 4" in str(error.value) and "errors_test.py:" in str(error.value)
    net = lz.nn.Sequential(layer, lz.relu)
    with pytest.raises(ValueError, match=r"errors_test.py:\d+\)$"):
        net(lz.ones(3, 5))


def test_a_failed_run_names_the_line_that_recorded_the_op():
    logits, labels = lz.randn(2, 3), lz.tensor([0, 7])
    loss = lz.nn.functional.cross_entropy(logits, labels); line = sys._getframe().f_lineno  # noqa: E702
    with pytest.raises(IndexError, match=rf"label 7 is out of range \[0, 3\) \(errors_test.py:{line}\)"):
        loss.item()


def test_dumps_show_the_users_function_and_line():
    def network(x):
        return lz.tanh(x)

    text = lz.debug.graph_text(network(lz.ones(4)))
    assert f"location=network@errors_test.py:{network.__code__.co_firstlineno + 1}" in text or \
        f"network@errors_test.py:{network.__code__.co_firstlineno + 1}" in text
    hlo, line = lz.debug.graph_hlo(lz.tanh(lz.ones(4))), sys._getframe().f_lineno
    assert f'op_name="aten__tanh" source_file="{__file__}" source_line={line}' in hlo
    assert "digraph" in lz.debug.graph_dot([lz.tanh(lz.ones(4))])


def run(program, *args):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(program), *args], capture_output=True, text=True,
                          timeout=120)


@pytest.mark.parametrize("ending", ["", "lz.mark_step()", "raise SystemExit(0)", "y.numpy()"])
def test_a_program_that_ends_with_work_pending_ends_well(ending):
    result = run(f"""
        import numpy as np
        import lazuli as lz
        x = lz.from_numpy(np.ones((64, 64), np.float32))
        y = x
        for _ in range(20):
            y = (y @ x).tanh()
        array = y.numpy() if {"numpy" in ending} else None
        loader = iter(lz.data.DataLoader([(np.ones(3, np.float32), 0)] * 1000, batch_size=2))
        next(loader)
        {ending}
    """)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("wait", ["total.item()", "lz.sync(wait=True)", "print(total)"])
def test_ctrl_c_ends_a_wait_and_what_was_waited_for_goes_on(wait):
    result = run(f"""
        import os, signal, threading
        import lazuli as lz
        x = lz.full((512, 512), 1 / 512, device="interpreter")
        y = x
        for _ in range(100):  # takes seconds
            y = y @ x
        total = y.sum()
        lz.mark_step()
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            {wait}
        except KeyboardInterrupt:
            print("interrupted")
        print(round(total.item()))
    """)
    assert (result.returncode, result.stdout, result.stderr) == (0, "interrupted\n512\n", "")


def test_an_error_in_a_step_leaves_the_process_usable():
    x = lz.ones(3)
    with pytest.raises(ValueError):
        lz.cat([x, lz.ones(2, 2)])
    assert (x + 1).tolist() == [2, 2, 2]


@pytest.mark.parametrize("call, message", [
    (lambda x: x.size("a"), "size: takes () or (dim: int), not (str)"),
    (lambda x: lz.sync(wait=[1]), "sync: takes (wait: bool = False), not (wait: list)"),
    (lambda x: lz.Device(3), "Device: takes () or (name: str) or (type: str, index: int), not (int)"),
    (lambda x: setattr(x, "name", 3), "name: takes "),
    (lambda x: x.register_hook(4), "register_hook: takes (hook: "),
    (lambda x: lz.autograd.grad(x, [3]), "grad: takes "),
    (lambda x: lz.nn.Linear(2, 2).register_module("a", 3), "register_module: takes (name: str, module: lazuli.nn.Module), not (str, int)"),
    (lambda x: lz.gradcheck(lambda _: 3, [x]), "gradcheck: f must give a Tensor, not int"),
    (lambda x: lz.optim.LambdaLR(lz.optim.SGD([x], lr=1.0), lambda t: "a"), "LambdaLR: the function must give a float, not str"),
    (lambda x: lz.dtype_of(len), "dtype_of: there is no dtype of a builtin_function_or_method")])
def test_arguments_that_do_not_fit_are_told_in_our_words(call, message):
    with pytest.raises(TypeError) as error:
        call(lz.ones(2))
    assert str(error.value).startswith(message)
    assert not any(word in str(error.value) for word in ("incompatible", "Invoked", "std::", "lazuli::", "handle"))


def test_a_schedule_that_is_over_says_so():
    schedule = lz.optim.OneCycleLR(lz.optim.SGD([lz.ones(2)], lr=0.1), 0.1, total_steps=2)
    schedule.optimizer.step()
    schedule.step()
    schedule.step()
    with pytest.raises(ValueError, match="step 3 is behind the last one of 2"):
        schedule.step()


def test_a_file_that_is_no_text_is_a_value_error(tmp_path):
    path = tmp_path / "module.hlo"
    path.write_bytes(b"HloModule \xa8\xff")
    with pytest.raises(ValueError):
        lz.hlo.HloModule.load(path)


def test_a_copy_names_the_line_that_copies():
    x = copy.deepcopy(lz.ones(2).exp())
    assert f"errors_test.py:{sys._getframe().f_lineno - 1}" in lz.debug.graph_text(x) and "copy.py" not in lz.debug.graph_text(x)


@pytest.mark.parametrize("call, kind, message", [
    (lambda x: x.narrow(0, 2**63 - 1, 2), IndexError, "narrow: [9223372036854775807, 9223372036854775807) is out of range for dim 0 of f32[2]"),
    (lambda x: x.reshape(2**62, 2**62), ValueError, "reshape: f32[2] has 2 elements, which do not fit dims"),
    (lambda x: x.reshape(2**32, 2**32, 0), ValueError, "reshape: f32[2] has 2 elements, which do not fit dims"),
    (lambda x: lz.zeros(0).reshape(2**32, 2**32), ValueError, "reshape: f32[0] has 0 elements, which do not fit dims"),
    (lambda x: lz.eye(2**62), ValueError, "arange: s64[4611686018427387904,4611686018427387904] is larger than"),
    (lambda x: lz.nn.functional.binary_cross_entropy_with_logits(x, lz.ones(3)), ValueError, "binary_cross_entropy_with_logits: shapes differ")])
def test_sizes_without_bound_are_refused_by_name(call, kind, message):
    with pytest.raises(kind) as error:
        call(lz.ones(2))
    assert str(error.value).startswith(message) and "errors_test.py:" in str(error.value)


def test_a_write_to_a_tensor_without_elements_is_one():
    for change in (lambda x: x.maximum_(x), lambda x: x.add_(0), lambda x: x.cumsum_(0), lambda x: x.fill_(3)):
        for device in ("cpu", "interpreter"):
            x = change(lz.zeros(0, 3, device=device))
            assert x.tolist() == [] and x.shape == (0, 3)


@pytest.mark.parametrize("option", [{"precision": "4"}, {"precision": 1.5}, {"edgeitems": [3]}, {"threshold": "inf"}, {"linewidth": ()}])
def test_options_of_printing_are_numbers(option):
    ((name, value),) = option.items()
    with pytest.raises(TypeError, match=f"^set_printoptions: {name} must be a number, not {type(value).__name__}"):
        lz.set_printoptions(**option)
    with lz.printoptions(threshold=float("inf"), linewidth=200):
        assert repr(lz.zeros(2)) == "tensor([0., 0.])"


def test_sizes_that_no_tensor_has_are_refused_at_once():
    with pytest.raises(ValueError, match=r"^pixel_shuffle: takes .* not f32\[1,4,2,2\] for 4294967296"):
        lz.pixel_shuffle(lz.ones(1, 4, 2, 2), 2**32)
    with pytest.raises(ValueError, match=r"^resize_: f32\[9223372036854775807,0\] is larger than"):
        lz.ones(3).resize_((2**63 - 1, 0))
    # No index is one of nothing; whether anybody wants a gradient does not matter.
    nothing, index, source = lz.zeros(0, 3), lz.zeros(2, 1, dtype=lz.int64) * 1, lz.ones(2, 1, requires_grad=True)
    for call in (lambda: nothing.scatter_add(0, index, source), lambda: nothing.gather(0, index), lambda: nothing[index.flatten()],
                 lambda: nothing.index_copy(0, index.flatten(), lz.ones(2, 3)), lambda: lz.nn.functional.embedding(index, nothing)):
        with pytest.raises(IndexError, match=r"index s64\[2.* selects from a dim without elements"):
            call()
    with pytest.raises(ValueError, match=r"^conv2d: f32\[1,1,1,2199023255553\] is larger than"):
        lz.conv2d(lz.ones(1, 1, 1, 1), lz.ones(1, 1, 1, 1), padding=(0, 2**40))
    for over in ({"stride": 2**62}, {"padding": 2**63 - 1}, {"dilation": 2**41}):
        with pytest.raises(ValueError, match=r"^conv2d: stride .* start at 1, padding at 0, and none is above 1099511627776"):
            lz.conv2d(lz.ones(1, 1, 3, 3), lz.ones(1, 1, 2, 2), **over)
    with pytest.raises(ValueError, match=r"^conv2d: kernel of weight .* is larger than the padded input"):
        lz.conv2d(lz.ones(1, 1, 3, 3), lz.ones(1, 1, 1, 2**37), dilation=2**40)
    with pytest.raises(ValueError, match=r"^to: f64\[17179869184,10\] is larger than"):
        lz.ones(2**34, 10, dtype=lz.uint8).to(lz.float64)
    # Nothing counts to a size.
    assert lz.triu_indices(2**31, 2).tolist() == [[0, 0, 1], [0, 1, 1]] and lz.tril_indices(2, 2**31).tolist() == [[0, 1, 1], [0, 0, 1]]
    interpolate = lz.nn.functional.interpolate
    assert interpolate(lz.ones(1, 1, 2), size=2**36).shape == (1, 1, 2**36)
    with pytest.raises(ValueError, match=r"^interpolate: takes at most \d+ weights for a dim, and 4 are wanted for each of the 1099511627776"):
        interpolate(lz.ones(1, 1, 2, 2, dtype=lz.uint8), size=(2, 2**40), mode="bicubic")
    with pytest.raises(ValueError, match=r"^interpolate: takes at most \d+ weights for a dim, and 2 are wanted"):
        interpolate(lz.ones(1, 1, 2, 2), size=(2, 2**40), mode="bilinear", antialias=True)
    for factor in (1e30, float("nan")):
        with pytest.raises(ValueError, match=r"^interpolate: dim 2 would have .* elements by its scale_factor"):
            interpolate(lz.ones(1, 1, 2), scale_factor=factor)
    x = lz.rand(2, 4, 3)
    assert lz.roll(x, -2**63, 1).tolist() == x.tolist()
    # Four channels have no more than three beside them on each side.
    before = lz.metrics.counter("graph.nodes_recorded")
    wide = lz.nn.functional.local_response_norm(x, 2**31, alpha=2**31)
    assert lz.metrics.counter("graph.nodes_recorded") - before < 50
    assert np.allclose(wide.numpy(), x.numpy() / (1 + (x.numpy() ** 2).sum(1, keepdims=True)) ** 0.75, rtol=1e-6)


def test_what_a_dtype_cannot_do_is_said_by_the_call():
    z = lz.ones(2, 3, dtype=lz.complex64)
    for call in (lambda: z.amax(), lambda: z.amin(1), lambda: z.max(), lambda: z.max(1), lambda: z.min(1), lambda: z.argmax(), lambda: z.argmin(1),
                 lambda: z.softmax(1), lambda: z.log_softmax(1), lambda: lz.arange(3, dtype=lz.bool), lambda: z.sort(1), lambda: z.topk(2, 1),
                 lambda: lz.nn.functional.max_pool2d(lz.ones(1, 1, 2, 2, dtype=lz.complex64), 2), lambda: z.cummax(1), lambda: z.median()):
        with pytest.raises(lz.Error) as error:
            call()
        assert here(error) in str(error.value) or "errors_test.py" in str(error.value)


def test_a_position_that_the_host_knows_is_checked_by_the_call():
    x = lz.zeros(3, 4)
    for index in ([0, 3], [-4], lz.tensor([5]), np.array([9]), lz.tensor([5], dtype=lz.int32), np.array([9], dtype=np.int32),
                  lz.tensor(np.array([3]), dtype=lz.int32), lz.tensor(np.array([3], dtype=np.uint8), dtype=lz.int32)):
        with pytest.raises(IndexError, match=r"index: index -?\d is out of range for dim 0 of size 3"):
            x[index]
        with pytest.raises(IndexError, match="out of range for dim 0 of size 3"):
            x[index] = 1
    with pytest.raises(IndexError, match="index 4 is out of range for dim 1 of size 4"):
        x[:, [0, 4]]
    assert x[[0, -3, 2]].shape == (3, 4) and x[lz.tensor([], dtype=lz.int64)].shape == (0, 4)
    computed = x[lz.tensor([1]) + 4]  # only a run knows it
    with pytest.raises(IndexError, match=r"index 5 is out of range \[0, 3\)"):
        computed.tolist()


def test_integers_that_a_dtype_holds_are_converted_by_the_host():
    before = lz.metrics.counter("graph.nodes_recorded")
    made = [lz.tensor([-128, 127], dtype=lz.int8), lz.tensor(np.array([7, 0]), dtype=lz.int32), lz.tensor([], dtype=lz.float64, requires_grad=True),
            lz.tensor([True], dtype=lz.int16), lz.tensor(2**64 - 1, dtype=lz.uint64)]
    assert lz.metrics.counter("graph.nodes_recorded") == before
    assert [x.tolist() for x in made] == [[-128, 127], [7, 0], [], [1], 2**64 - 1]
    others = np.array([300, -1])  # of an array are converted on the device
    assert lz.tensor(others, dtype=lz.uint8).tolist() == lz.tensor(others).to(lz.uint8).tolist() == [44, 255]


@pytest.mark.parametrize(("number", "dtype"), [(300, "uint8"), (-256, "uint8"), (128, "int8"), (-129, "int8"), (2**31, "int32"), (-1.0, "uint8"), (1e10, "int32"),
                                               (float("nan"), "int64"), (float("inf"), "int16"), (1j, "float32"), (1 + 0j, "int64")])
def test_a_number_that_a_dtype_does_not_hold_is_refused(number, dtype):
    for data in (number, [[number]], (0, number)):
        with pytest.raises(RuntimeError, match="tensor: (the number .* does|complex numbers do) not fit"):
            lz.tensor(data, dtype=getattr(lz, dtype))


def test_numbers_that_torch_converts_are_converted():
    assert lz.tensor([-1, -255, 255], dtype=lz.uint8).tolist() == [255, 1, 255] and lz.tensor([1.9, -1.9], dtype=lz.int32).tolist() == [1, -1]
    assert lz.tensor([2, 0.0, 1j], dtype=lz.bool).tolist() == [True, False, True] and lz.tensor([1e300], dtype=lz.float32).tolist() == [float("inf")]
    assert lz.tensor([], dtype=lz.int8).shape == (0,) and lz.tensor([True], dtype=lz.uint8).item() == 1


def test_what_is_made_of_other_functions_names_its_own():
    x, far = lz.ones(2, 3), lz.tensor([7]) + 0
    for name, call in {"take": lambda: lz.take(x, far), "take_along_dim": lambda: lz.take_along_dim(x, far[None], 1),
                       "index_fill": lambda: lz.index_fill(x, 0, far, 1.0), "index_fill_": lambda: x.clone().index_fill_(0, far, 1.0)}.items():
        with pytest.raises(IndexError, match=rf"^{name}: index 7 is out of range"):
            call().tolist()


def test_as_many_values_as_a_mask_picks():
    x = lz.zeros(3)
    mask = lz.tensor([True, False, True])
    with pytest.raises(ValueError, match="index_put_: the mask picks 2 elements, the value has 3"):
        x[mask] = lz.ones(3)
    x[mask] = lz.tensor([1.0, 2.0])
    x[mask] = 3.0
    assert x.tolist() == [3, 0, 3]
    with pytest.raises(lz.Error, match="the mask picks 2 elements, the value has 3"):
        x[x > 1] = lz.ones(3)
        x.tolist()
