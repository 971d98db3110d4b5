"""Names of PyTorch that programs stop at where they are missing: tensors for modules, derivatives of functions, losses, storages."""

import contextlib

import numpy as np
import pytest

import lazuli as lz
from lazuli.utils.checkpoint import CheckpointError, checkpoint

F = lz.nn.functional


def test_a_buffer_registers_itself():
    class Net(lz.nn.Module):
        def __init__(self):
            super().__init__()
            self.kept, self.other = lz.nn.Buffer(lz.ones(2)), lz.nn.Buffer(lz.zeros(3), persistent=False)

    net = Net()
    assert [name for name, _ in net.named_buffers()] == ["kept", "other"] and list(net.state_dict()) == ["kept"]
    assert isinstance(net.kept, lz.nn.Buffer) and not isinstance(lz.ones(1), lz.nn.Buffer)
    net.kept = lz.zeros(2)
    assert net.state_dict()["kept"].tolist() == [0, 0]


def test_an_uninitialized_parameter_is_one_until_it_has_a_shape():
    p = lz.nn.UninitializedParameter(dtype=lz.float64)
    assert isinstance(p, lz.nn.UninitializedParameter) and isinstance(p, lz.nn.Parameter) and lz.nn.parameter.is_lazy(p)
    p.materialize((2, 3))
    assert p.shape == (2, 3) and p.dtype == lz.float64 and p.requires_grad
    assert not isinstance(p, lz.nn.UninitializedParameter) and isinstance(p, lz.nn.Parameter)
    b = lz.nn.UninitializedBuffer()
    assert lz.nn.parameter.is_lazy(b)
    b.materialize((4,))
    assert b.shape == (4,) and not lz.nn.parameter.is_lazy(b)


def test_sync_batch_norm_is_batch_norm():
    x = lz.randn(6, 3, 4)
    net = lz.nn.Sequential(lz.nn.BatchNorm1d(3))
    expected = net(x)
    mean = net[0].running_mean.clone()
    made = lz.nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert type(made[0]) is lz.nn.SyncBatchNorm and made[0].running_mean.tolist() == mean.tolist()
    np.testing.assert_allclose(made(x).detach().numpy(), expected.detach().numpy(), rtol=1e-5, atol=1e-6)
    assert isinstance(made[0], lz.nn.modules.batchnorm._BatchNorm) and made[0].num_batches_tracked.item() == 2
    with pytest.raises(ValueError, match=r"expected at least 2D input \(got 1D input\)"):
        made[0](lz.ones(3))


def test_skip_init_draws_nothing():
    lz.manual_seed(1)
    layer = lz.nn.utils.skip_init(lz.nn.Linear, 2, 3)
    drawn = lz.rand(1).item()
    lz.manual_seed(1)
    assert layer.weight.shape == (3, 2) and drawn == lz.rand(1).item()
    with pytest.raises(RuntimeError, match="Expected a Module"):
        lz.nn.utils.skip_init(int, 3)


def test_sequences_are_repeated():
    steps = lz.nn.Sequential(lz.nn.ReLU(), lz.nn.Tanh())
    assert len(steps * 2) == len(2 * steps) == 4 and (steps * 2)[2] is steps[0]
    with pytest.raises(ValueError, match="Non-positive multiplication factor 0"):
        steps * 0
    with pytest.raises(ValueError, match="add operator supports only objects of Sequential class"):
        steps + [lz.nn.ReLU()]


def test_derivatives_of_functions():
    x, y = lz.tensor([1.0, 2.0]), lz.tensor([3.0, 5.0])
    f = lz.autograd.functional
    assert f.jacobian(lambda a: a ** 2, x).tolist() == [[2, 0], [0, 4]]
    by_x, by_y = f.jacobian(lambda a, b: (a * b).sum(), (x, y))
    assert by_x.tolist() == [3, 5] and by_y.tolist() == [1, 2]
    assert f.hessian(lambda a: (a ** 3).sum(), x).tolist() == [[6, 0], [0, 12]]
    assert f.vjp(lambda a: a ** 2, x, y)[1].tolist() == [6, 20] == f.jvp(lambda a: a ** 2, x, y)[1].tolist()
    value, product = f.hvp(lambda a: (a ** 3).sum(), x, y)
    assert value.item() == 9 and product.tolist() == [18, 60]
    with pytest.raises(RuntimeError, match=r"v has invalid size: should be \(2,\) but got \(3,\)"):
        f.vjp(lambda a: a, x, lz.ones(3))
    with pytest.raises(RuntimeError, match="independent of input 1. This is not allowed in strict mode"):
        f.jacobian(lambda a, b: a, (x, y), strict=True)
    with pytest.raises(RuntimeError, match="given to hessian should contain a single element"):
        f.hessian(lambda a: a, x)


def test_losses_take_weights():
    x, y, w = lz.tensor([1.0, 2.0]), lz.zeros(2), lz.tensor([1.0, 3.0])
    assert F.mse_loss(x, y, weight=w).item() == 13 / 4 and F.l1_loss(x, y, weight=w, reduction="sum").item() == 7
    assert F.huber_loss(x, y, weight=w).item() == (0.5 + 3 * 1.5) / 2
    with pytest.raises(ValueError, match="Inputs and weights must have the same size"):
        F.mse_loss(x, y, weight=lz.ones(3))
    logits = lz.tensor([[1.0, 0.0], [2.0, 1.0]])
    rows = lz.eye(2)
    assert F.linear_cross_entropy(logits, rows, lz.tensor([0, 1])).item() == pytest.approx(
        F.cross_entropy(logits, lz.tensor([0, 1])).item())
    loss = lz.nn.LinearCrossEntropyLoss(2, 2, bias=True, options=lz.nn.LinearCrossEntropyOptions())
    loss.linear.weight.data.copy_(rows)
    loss.linear.bias.data.zero_()
    assert loss(logits, lz.tensor([0, 1])).item() == pytest.approx(F.cross_entropy(logits, lz.tensor([0, 1])).item())
    with pytest.raises(ValueError, match=r"expected weight shape to be \(2,\), got \(3,\)"):
        lz.nn.LinearCrossEntropyLoss(2, 2, weight=lz.ones(3))


def test_groups_of_rows_have_matrices_of_their_own():
    a, b = lz.ones(4, 2), lz.stack([lz.ones(2, 3), 2 * lz.ones(2, 3)])
    y = F.grouped_mm(a, b, offs=lz.tensor([1, 3], dtype=lz.int32))
    assert y[:, 0].tolist() == [2, 4, 4, 0]
    with pytest.raises(ValueError, match="Have to provide offsets if there is a 2d matrix"):
        F.grouped_mm(a, b)


def test_antialias_takes_the_mean_of_what_an_element_covers():
    x = lz.arange(8, dtype=lz.float64).reshape(1, 1, 1, 8)
    y = F.interpolate(x, size=(1, 4), mode="bilinear", antialias=True)
    np.testing.assert_allclose(y.flatten().numpy(), [5 / 7, 2.5, 4.5, 44 / 7], rtol=1e-12)
    with pytest.raises(ValueError, match="antialias can only be set with the modes bilinear and bicubic, not nearest"):
        F.interpolate(x, size=(1, 4), mode="nearest", antialias=True)


def test_rows_of_a_bag_are_limited():
    w = lz.tensor([[3.0, 4.0], [0.3, 0.4]])
    assert F.embedding_bag(lz.tensor([[0, 1]]), w, max_norm=1.0, mode="sum").tolist() == [[pytest.approx(0.9), pytest.approx(1.2)]]
    np.testing.assert_allclose(w.norm(dim=1).numpy(), [1, 0.5], rtol=1e-5)


def test_a_checkpoint_notes_another_result():
    log, x = [], lz.ones(3, requires_grad=True)

    @contextlib.contextmanager
    def noted(name):
        log.append(name)
        yield

    checkpoint(lambda v: v.sin().sum(), x, use_reentrant=False, context_fn=lambda: (noted("first"), noted("again"))).backward()
    assert log == ["first", "again"]
    calls = []

    def changing(v):
        calls.append(1)
        return (v.exp() * v)[:len(calls)].sin()

    with pytest.raises(CheckpointError, match=r"gave other tensors when it was called again: .*\(2,\).*, not .*\(1,\)"):
        checkpoint(changing, x, use_reentrant=False).sum().backward()
    with pytest.raises(ValueError, match="determinism_check should be one of"):
        checkpoint(lambda v: v, x, determinism_check="some")


def test_storages_say_how_large_they_are():
    x = lz.ones(2, 3)
    bytes_of, elements = x.untyped_storage(), x.storage()
    assert bytes_of.nbytes() == bytes_of.size() == len(bytes_of) == 24 and bytes_of.element_size() == 1
    assert elements.size() == 6 and elements.element_size() == 4 and elements.dtype == lz.float32 and lz.is_storage(elements)
    assert x[1:].untyped_storage() == bytes_of and x[1:].untyped_storage().nbytes() == 24
    assert x.dim_order() == (0, 1) and x.t().dim_order() == (1, 0) and x.new(2).shape == (2,) and x.is_set_to(x)


def test_made_tensors_keep_their_bounds():
    lz.manual_seed(2)
    x = lz.testing.make_tensor((20, 30), dtype=lz.float32, low=2, high=3, noncontiguous=True)
    assert x.shape == (20, 30) and not x.is_contiguous() and 2 <= x.min().item() and x.max().item() < 3
    assert lz.testing.make_tensor(200, dtype=lz.uint8, exclude_zero=True).min().item() >= 1
    with pytest.raises(ValueError, match="`low` must be less than `high`, but got 3 >= 3"):
        lz.testing.make_tensor(2, dtype=lz.int64, low=3, high=3)


def test_backends_of_attention_are_checked():
    kernel, backend = lz.nn.attention.sdpa_kernel, lz.nn.attention.SDPBackend
    with kernel([backend.MATH, backend.FLASH_ATTENTION]):
        F.scaled_dot_product_attention(lz.ones(1, 2, 4), lz.ones(1, 2, 4), lz.ones(1, 2, 4))
    with pytest.raises(AssertionError, match="Backend must be an instance of SDPBackend"), kernel("math"):
        pass


def test_batch_norm_by_the_name_of_compilers():
    x = lz.tensor([[1.0, 2.0], [3.0, 6.0]])
    mean, var = lz.zeros(2), lz.ones(2)
    y, *_ = lz._native_batch_norm_legit(x, None, None, mean, var, True, 0.5, 1e-9)
    assert y.flatten().tolist() == pytest.approx([-1, -1, 1, 1]) and mean.tolist() == [1, 2] and var.tolist() == pytest.approx([1.5, 4.5])
    assert lz._native_batch_norm_legit(x, None, None, True, 0.1, 1e-9)[0].tolist() == y.tolist()
