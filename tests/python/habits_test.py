"""What users of PyTorch and NumPy type first works, or says what to type instead."""

import pickle

import numpy as np
import pytest

import lazuli as lz
from lazuli import nn
from lazuli.nn import functional as F  # noqa: N812


def test_arguments_go_by_the_names_of_pytorch_and_numpy_too():
    x = lz.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert x.sum(dim=1).tolist() == x.sum(axis=1).tolist() == [6, 15]
    assert x.mean(dim=(0, 1), keepdims=True).tolist() == [[3.5]]
    assert x.argmax(axis=0).tolist() == [1, 1, 1]
    assert lz.add(input=x, other=1)[0].tolist() == [2, 3, 4]
    assert x.clamp(min=2, max=3)[0].tolist() == [2, 2, 3]
    assert lz.full(size=(2,), fill_value=7).tolist() == [7, 7]
    assert lz.nn.Conv2d(1, 2, kernel_size=3).weight.shape == (2, 1, 3, 3)
    assert lz.nn.functional.cross_entropy(input=x, target=lz.tensor([2, 2])).item() == pytest.approx(0.4076, 1e-3)
    with pytest.raises(TypeError, match="'dims' is given twice"):
        x.sum(0, dim=1)
    with pytest.raises(TypeError, match="there is no argument 'dimension'"):
        x.sum(dimension=1)


def test_conversions():
    x = lz.tensor([1.5, -2.0])
    for name, dtype in {"float": lz.float32, "double": lz.float64, "half": lz.float16, "bfloat16": lz.bfloat16,
                        "long": lz.int64, "int": lz.int32, "short": lz.int16, "bool": lz.bool}.items():
        assert getattr(x, name)().dtype == dtype == getattr(lz, name)
    assert x.to("cpu", lz.float64).dtype == x.to(dtype=lz.float64, device="cpu").dtype == lz.float64
    assert x.to("interpreter").device == lz.Device("interpreter") and x.cpu().tolist() == [1.5, -2]
    assert x.to(lz.int8).dtype == lz.int8 and x.to(np.float16).dtype == lz.float16
    assert x.to(lz.tensor(1, device="interpreter")).device.name == "interpreter:0"
    assert x.int().tolist() == [1, -2] and x.type_as(x.long()).dtype == lz.int64
    assert x.element_size() == 4 and x.nelement() == 2


def test_shapes():
    x = lz.arange(6)
    assert x.view(2, 3).shape == x.view((2, -1)).shape == (2, 3)
    assert x.view(2, 3, 1).expand(4, -1, -1, 5).shape == (4, 2, 3, 5)
    assert x.contiguous() is x
    assert 5 in x and 6 not in x


def test_arrays_of_positions_pick_along_their_dims():
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    x = lz.tensor(array)
    for index in (np.s_[[1, 0, 1]], np.s_[:, [2, 0]], np.s_[..., np.array([[3, 0], [1, 1]])], np.s_[1, [0, 2], 1:],
                  np.s_[np.array(1)], np.s_[[-1, 0]], np.s_[[0, 1], [2, -1]], np.s_[:, [[0], [2]], [1, 3]],
                  np.s_[[0, 1], [2, 0], [3, -4]], np.s_[[0, 1], :, [0, 1]], np.s_[[[0], [1]], None, 1:, [3, -1]]):
        np.testing.assert_array_equal(x[index].numpy(), array[index])
    assert x[lz.tensor([[1]])].shape == (1, 1, 3, 4)
    logits = lz.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    logits[lz.arange(2), lz.tensor([1, 0])].sum().backward()
    assert logits.grad.tolist() == [[0, 1], [1, 0]]
    with pytest.raises(IndexError, match=r"index -3 is out of range for dim 0 of size 2 \(habits_test.py:\d+\)"):
        x[[0, -3]].numpy()
    with pytest.raises(IndexError, match=r"out of range"):
        x[[0, 1], [0, 3]].numpy()
    with pytest.raises(IndexError, match=r"positions must be integers of 32 or 64 bits, are f32\[1\]"):
        x[[0.5]]


def test_masks_assign():
    x = lz.tensor([[1.0, -2.0], [-3.0, 4.0]])
    x[x < 0] = 0
    assert x.tolist() == [[1, 0], [0, 4]]
    x[lz.tensor([True, False])] = lz.tensor([7.0, 8.0])
    assert x.tolist() == [[7, 8], [0, 4]]
    with pytest.raises(IndexError, match=r"the mask pred\[3\] has not the leading dims of f32\[2,2\] \(habits_test.py:\d+\)"):
        x[lz.tensor([True, False, True])] = 0
    x[x > 0] = lz.tensor([1.0, 2.0])  # three are
    with pytest.raises(IndexError, match=r"the mask picks 3 elements, the value has 2 \(habits_test.py:\d+\)"):
        x.numpy()


def test_assigns_arrays_and_lists():
    x = lz.zeros(2, 2)
    x[:, 0] = [1, 2]
    x[1] = np.array([3.0, 4.0])
    assert x.tolist() == [[1, 0], [3, 4]]


def test_losses_are_modules_too():
    x, y = lz.tensor([[1.0, 2.0]]), lz.tensor([1])
    assert lz.nn.CrossEntropyLoss()(x, y).item() == lz.nn.functional.cross_entropy(x, y).item()
    assert lz.nn.MSELoss(reduction="sum")(x, lz.zeros(1, 2)).item() == 5
    assert repr(lz.nn.MSELoss(reduction="sum")) == "MSELoss()"
    with pytest.warns(UserWarning, match="MSELoss: size_average and reduce are old; reduction='sum' says the same"):
        assert lz.nn.MSELoss(size_average=False)(x, lz.zeros(1, 2)).item() == 5
    weighted = lz.nn.CrossEntropyLoss(lz.tensor([1.0, 3.0]), reduction="none")
    assert list(weighted.state_dict()) == ["weight"] and weighted.reduction == "none"
    assert weighted(x, y).item() == pytest.approx(3 * lz.nn.functional.cross_entropy(x, y).item())
    with pytest.raises(TypeError, match="unexpected keyword argument 'wieght'"):
        lz.nn.NLLLoss(wieght=None)
    assert lz.nn.functional.relu(x).tolist() == [[1, 2]]


def test_gradient_mode_is_a_function_too():
    lz.set_grad_enabled(False)
    assert not lz.is_grad_enabled()
    with lz.set_grad_enabled(True):
        assert lz.is_grad_enabled()
    assert not lz.is_grad_enabled()
    lz.set_grad_enabled(True)


def test_max_and_min_are_three_functions():
    x = lz.tensor([[1.0, 5.0], [7.0, 2.0]])
    assert x.max().item() == lz.max(x).item() == 7 and x.min().item() == 1
    values, positions = x.min(dim=1)
    assert values.tolist() == [1, 2] and positions.tolist() == [0, 1]
    assert lz.max(x, lz.full((2, 2), 3.0)).tolist() == [[3, 5], [7, 3]]
    assert lz.tensor([-128, 3], dtype=lz.int8).min(0)[0].item() == -128
    assert lz.tensor([3, 0, 250], dtype=lz.uint8).argmin().item() == 1
    with pytest.raises(IndexError, match="habits_test.py"):
        x.max(5)


X = np.array([[3.5, -1.0, 2.0], [-0.5, 7.25, -2.0]], np.float32)
AS_NUMPY = {
    "all": (lambda x: (x > -2).all(dim=1), lambda x: (x > -2).all(1)),
    "any": (lambda x: (x > 5).any(0), lambda x: (x > 5).any(0)),
    "var": (lambda x: x.var(dim=1), lambda x: x.var(1, ddof=1)),
    "std": (lambda x: x.std(), lambda x: x.std(ddof=1)),
    "std_of_the_whole": (lambda x: x.std(0, correction=0, keepdim=True), lambda x: x.std(0, keepdims=True)),
    "norm": (lambda x: x.norm(), np.linalg.norm),
    "logsumexp": (lambda x: (1000 * x).logsumexp(1), lambda x: 1000 * x.max(1)),
    "remainder": (lambda x: x % 2, lambda x: x % 2),
    "reflected_remainder": (lambda x: 7 % x, lambda x: 7 % x),
    "floor_divide": (lambda x: x // 2, lambda x: x // 2),
    "integers": (lambda x: x.long() // -2, lambda x: x.astype(np.int64) // -2),
    "integer_remainder": (lambda x: x.long() % -2, lambda x: x.astype(np.int64) % -2),
    "isnan": (lambda x: (x.log()).isnan(), lambda x: x < 0),
    "isinf": (lambda x: lz.isinf(x / 0), lambda x: np.ones_like(x, bool)),
    "isfinite": (lambda x: lz.isfinite(x.log()), lambda x: x > 0),
    "masked_fill": (lambda x: x.masked_fill(x < 0, 9), lambda x: np.where(x < 0, 9, x)),
    "tril": (lambda x: lz.tril(x), np.tril), "triu": (lambda x: x.triu(1), lambda x: np.triu(x, 1)),
    "split": (lambda x: lz.cat(x.split(2, dim=1)[::-1], 1), lambda x: x[:, [2, 0, 1]]),
    "chunk": (lambda x: x.chunk(2, -1)[1], lambda x: x[:, 2:]),
    "clamp_below": (lambda x: x.clamp(min=0), lambda x: np.maximum(x, 0)),
    "clamp_above": (lambda x: x.long().clamp(max=1), lambda x: np.minimum(x.astype(np.int64), 1)),
    "linspace": (lambda x: lz.linspace(-1, 2, 7), lambda x: np.linspace(-1, 2, 7, dtype=np.float32)),
    "arange": (lambda x: lz.arange(7, -3, -2), lambda x: np.arange(7, -3, -2)),
    "arange_of_floats": (lambda x: lz.arange(0.5, 2.0, 0.25), lambda x: np.arange(0.5, 2, 0.25, np.float32)),
}


@pytest.mark.parametrize("name", AS_NUMPY)
def test_values_are_numpys(name):
    ours, numpys = AS_NUMPY[name]
    with np.errstate(all="ignore"):
        result, wanted = ours(lz.tensor(X)).numpy(), np.asarray(numpys(X))
    np.testing.assert_allclose(result, wanted, rtol=2e-6)
    assert result.shape == wanted.shape and result.dtype == wanted.dtype


def test_random_numbers_of_other_kinds():
    lz.manual_seed(1)
    x = lz.randint(-2, 3, (1000,))
    assert x.dtype == lz.int64 and sorted(set(x.tolist())) == [-2, -1, 0, 1, 2]
    assert sorted(lz.randperm(20).tolist()) == list(range(20))
    assert lz.randn_like(lz.ones(3, dtype=lz.float64)).dtype == lz.float64 and lz.rand_like(x.float()).shape == (1000,)
    with pytest.raises(ValueError, match=r"randint: low must be below high, but 3 >= 3 \(habits_test.py:\d+\)"):
        lz.randint(3, 3, (2,))


@pytest.mark.parametrize("equal_nan", [False, True])
@pytest.mark.parametrize("x", [0, 1, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("y", [0, 1 + 1e-6, np.inf, -np.inf, np.nan])
def test_allclose_is_numpys_also_of_infinities(x, y, equal_nan):
    close = lz.allclose(lz.tensor([x, 2.0]), lz.tensor([y, 2.0]), equal_nan=equal_nan)
    assert close is np.allclose([x, 2.0], [y, 2.0], equal_nan=equal_nan)


def test_more_that_pytorch_has():
    x = lz.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.repeat(2, 1, 2).tolist() == np.tile(x.numpy(), (2, 1, 2)).tolist()
    first, second = lz.unbind(x, 1)
    assert first.tolist() == [1, 3] and second.tolist() == [2, 4]
    assert lz.equal(x, x + 0) and not x.equal(x + 1) and not x.equal(x[0])
    assert lz.allclose(x, x + 1e-6) and not lz.allclose(x, x + 1e-3)
    assert lz.outer(first, second).tolist() == [[2, 4], [6, 12]] and first.dot(second).item() == 14
    assert x.mT.tolist() == [[1, 3], [2, 4]] and x.mm(x).tolist() == (x @ x).tolist()
    x.data = x.data * 2
    assert x.tolist() == [[2, 4], [6, 8]] and not x.data.requires_grad
    assert lz.is_tensor(x) and not lz.is_tensor(1)
    device = lz.device("cpu:0")
    assert (device.type, device.index) == ("cpu", 0)
    lz.manual_seed(-1)
    assert repr(lz.zeros(0)) == "tensor([])"
    dropped = lz.nn.functional.dropout(lz.ones(100), 0.5, training=True)
    assert 0 < dropped.sum().item() < 200
    assert lz.nn.functional.dropout(x, 0.5, training=False) is x


def test_modules_and_optimisers_show_what_they_are_made_of():
    net = lz.nn.Sequential(lz.nn.Conv2d(1, 2, 3, padding=1), lz.nn.Dropout(0.1))
    assert repr(net) == \
        "Sequential(\n  (0): Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))\n  (1): Dropout(p=0.1, inplace=False)\n)"
    assert repr(lz.optim.SGD(net.parameters(), lr=0.5)) == \
        ("SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n    foreach: None\n    fused: None\n    lr: 0.5\n"
         "    maximize: False\n    momentum: 0\n    nesterov: False\n    weight_decay: 0\n)")


def test_modules_convert_and_list_what_they_hold():
    net = lz.nn.Sequential(lz.nn.BatchNorm1d(2), lz.nn.Linear(2, 1))
    weight = net[1].weight
    assert net.double() is net and net[0].running_mean.dtype == weight.dtype == lz.float64
    assert net[0].num_batches_tracked.dtype == lz.int64
    assert net(lz.ones(3, 2, dtype=lz.float64)).dtype == lz.float64
    assert net.float().to("interpreter")[1].bias.device.name == "interpreter:0"
    assert list(net.children()) == [net[0], net[1]] and list(net.modules()) == [net, net[0], net[1]]
    assert not any(p.requires_grad for p in net.requires_grad_(False).parameters())


def test_gradients_of_compositions():
    x = lz.tensor([0.3, -0.7, 1.5], dtype=lz.float64)
    for f in (lambda x: x.var(), lambda x: x.norm(), lambda x: x.logsumexp(0), lambda x: x.min(0)[0], lambda x: (x % 0.4).sum(),
              lambda x: x.reshape(1, 3).tril().sum(), lambda x: x.clamp(min=0).sum(), lambda x: x.chunk(2)[1].prod()):
        assert lz.gradcheck(lambda inputs: f(inputs[0]), [x]) < 1e-6  # noqa: B023


def test_dlpack():
    x = lz.tensor([1.0, 2.0]) * 2
    assert np.from_dlpack(x).tolist() == [2, 4]
    array = np.from_dlpack(x, copy=False)
    assert array.tolist() == [2, 4] and array.__array_interface__["data"] == x.numpy().__array_interface__["data"]
    assert lz.from_dlpack(np.arange(3)).tolist() == [0, 1, 2]


def test_numbers_read_later():
    later = (lz.ones(3) * 2).sum().item_async()
    lz.mark_step()
    assert later.get() == 6 and later.ready


def test_messages_speak_python():
    x = lz.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match=r"do it under no_grad\(\)"):
        x.add_(1)
    with pytest.raises(ValueError, match=r"has 2 elements, not one; use tolist\(\)"):
        x.item()
    with pytest.raises(TypeError, match="Tensor: takes a row of elements, or sizes"):
        lz.Tensor([1, 2], [3])


def test_functions_take_pytorchs_arguments_and_refuse_what_it_refuses():
    functional, x = lz.nn.functional, lz.arange(16.0).reshape(1, 1, 4, 4)
    largest, where = functional.max_pool2d(x, 2, None, 0, (1, 2), return_indices=True)
    assert largest.tolist() == where.tolist() == [[[[6], [14]]]]
    assert functional.max_pool1d(lz.full((1, 1, 3), -np.inf), (2,), 1, 1, return_indices=True)[1].tolist() == [[[0, 0, 1, 2]]]
    assert functional.avg_pool2d(x, 2, divisor_override=2)[0, 0].tolist() == [[5, 9], [21, 25]]
    assert functional.avg_pool2d(-x.long(), 2, 2)[0, 0].tolist() == [[-2, -4], [-10, -12]]
    kernel = lz.tensor([[[[0.0, 1.0], [0.0, 0.0]]]])
    assert functional.conv2d(x, kernel, padding="same")[0, 0, 0].tolist() == [1, 2, 3, 0]
    windows = functional.unfold(x, 2, stride=2)
    assert windows.shape == (1, 4, 4) and windows[0, :, 3].tolist() == [10, 11, 14, 15]
    assert lz.repeat_interleave(lz.tensor([5, 6, 7]), lz.tensor([1, 0, 2])).tolist() == [5, 7, 7]
    y = lz.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert lz.einsum(y, [0, 1], y, [1, 2], [2, 0]).tolist() == [[7, 15], [10, 22]]
    assert lz.arange(0.5, 7, 1.5, dtype=lz.int16).tolist() == [0, 1, 2, 3, 4]
    for call in (lambda: lz.lt(2, y), lambda: lz.maximum(y, 2), lambda: y.logical_and(1), lambda: lz.fmod(2, y)):
        with pytest.raises(TypeError, match="must be Tensor, not int"):
            call()
    wide = lz.empty(2, 2, dtype=lz.float64)
    assert lz.sin(y, out=wide) is wide and lz.add(y, 1, out=wide).tolist() == [[2, 3], [4, 5]]
    with pytest.raises(RuntimeError, match="neg: out= must have the dtype of the result, f32, but has f64"):
        lz.neg(y, out=wide)
    row = lz.arange(5.0)
    assert lz.mul(row, 2, out=row).tolist() == [0, 2, 4, 6, 8]
    with pytest.raises(RuntimeError, match="share part of their memory"):
        lz.mul(row[:3], 2, out=row[1:4])
    with pytest.raises(RuntimeError, match="index_select: unsupported operation: out= and an operand share their memory"):
        lz.index_select(row, 0, lz.arange(5), out=row)
    assert row.tolist() == [0, 2, 4, 6, 8]


def test_dtypes_and_classes_of_errors_at_the_edges():
    i16 = lz.tensor([[1, 2], [3, 4]], dtype=lz.int16)
    assert lz.einsum("ij,k->i", i16, lz.tensor([1, 2], dtype=lz.int16)).dtype == lz.int64  # j and k are sums
    assert lz.einsum("ij,jk->ik", i16, i16).dtype == lz.int16
    assert all(t.dtype == lz.int64 for t in lz.unravel_index(lz.tensor([3, 1], dtype=lz.int8), (2, 2)))
    x = lz.ones(2, 3, dtype=lz.bfloat16)
    assert lz.cov(x, fweights=lz.tensor([1, 2, 3])).dtype == lz.bfloat16 and lz.cov(x, aweights=lz.ones(3)).dtype == lz.float32
    volume = lz.arange(-30, 30).reshape(1, 1, 3, 4, 5)
    assert lz.nn.functional.avg_pool3d(volume, 2, ceil_mode=True, divisor_override=3).flatten()[:4].tolist() == [-45, -40, -18, -18]
    values, places = lz.nn.functional.max_pool3d(volume, 2, padding=1, return_indices=True)
    assert values.dtype == lz.int64 and values.flatten()[:3].tolist() == [-30, -28, -26] and places.flatten()[:3].tolist() == [0, 2, 4]
    with pytest.raises(NotImplementedError, match="avg_pool2d: is not implemented for"):
        lz.nn.functional.avg_pool2d(lz.ones(1, 4, 4, dtype=lz.bool), 2)
    assert lz.nn.functional.batch_norm(lz.zeros(0), lz.zeros(0), lz.zeros(0)).shape == (0,)
    one = lz.tensor(2.0, requires_grad=True)
    assert lz.nn.functional.feature_alpha_dropout(one, 1.0, True).item() == 0
    row = lz.ones(5, requires_grad=True)
    lz.gather(row, 0, lz.zeros(2, 0, dtype=lz.int64)).sum().backward()
    assert row.grad.tolist() == [0] * 5
    with pytest.raises(TypeError, match="isclose: takes operands of one dtype"):
        lz.allclose(lz.ones(2), lz.ones(2).double())
    for index in (1.5, lz.tensor([1.0])):
        with pytest.raises(IndexError, match="integers"):
            row[index]


def test_dtypes_that_are_the_default_are_not_printed():
    lz.set_default_dtype(lz.float64)
    try:
        shown = [repr(lz.ones(1).to(dtype)) for dtype in (lz.float64, lz.float32, lz.complex128, lz.complex64)]
    finally:
        lz.set_default_dtype(lz.float32)
    assert shown == ["tensor([1.])", "tensor([1.], dtype=lazuli.float32)", "tensor([1.+0.j])", "tensor([1.+0.j], dtype=lazuli.complex64)"]


def test_indices_are_what_pytorch_takes_them_for():
    x = lz.arange(6.0).reshape(2, 3)
    assert x[lz.tensor([0, 1], dtype=lz.uint8)].tolist() == [[3, 4, 5]]  # bytes are a mask
    y = x.clone()
    y[lz.tensor([1, 0], dtype=lz.uint8)] = 9
    assert y.tolist() == [[9, 9, 9], [3, 4, 5]] and x[[]].shape == (0, 3) and x[range(1)].tolist() == [[0, 1, 2]]
    assert x[[[0, 1]]].shape == (2, 3) and x[[slice(1), [2]]].tolist() == [[2]]  # lists of more than numbers are tuples
    with pytest.raises(IndexError, match="positions must be integers of 32 or 64 bits, are s8"):
        x[lz.tensor([0], dtype=lz.int8)]
    index, source = lz.tensor([[0], [1]]), lz.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    for form, expected in (("scatter", [[1, 1, 2], [3, 3, 5]]), ("scatter_add", [[1, 1, 2], [3, 7, 5]])):
        source.grad = None
        got = getattr(x, form)(1, index, source)
        got.sum().backward()
        assert got.tolist() == expected and source.grad.tolist() == [[1, 0], [1, 0]]
    assert lz.zeros(2).fill_(lz.tensor(3)).tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="fill_: takes a number or a tensor of rank 0, not f32.1."):
        lz.zeros(2).fill_(lz.ones(1))


def test_what_tensors_say_of_themselves():
    x = lz.tensor([[1.0, -2.0, 3.0]])
    assert (x.nbytes, x.itemsize, x.ndimension(), x.get_device(), x.layout) == (12, 4, 2, -1, lz.strided)
    assert not (x.is_cuda or x.is_sparse or x.is_quantized or x.is_meta) and x.is_cpu
    assert x.pin_memory() is x and x.is_same_size(x + 1) and lz.is_nonzero(lz.tensor(2))
    with pytest.raises(NotImplementedError, match="cuda: there is no GPU"):
        x.cuda()
    with pytest.raises(ValueError, match="is_nonzero: takes one element, not 3"):
        x.is_nonzero()
    assert x.clone().apply_(lambda v: v * 2).tolist() == [[2, -4, 6]]
    assert x.clone().map_(lz.tensor([1.0, 1.0, 2.0]), lambda a, b: a + b).tolist() == [[2, -1, 5]]
    assert (+x).tolist() == x.tolist() and x.sub(1, alpha=3).tolist() == [[-2, -5, 0]]
    assert lz.add(lz.tensor([1]), 1, alpha=2).dtype == lz.int64


def test_alpha_is_of_a_kind_that_the_sum_takes():
    whole, bools, floats = lz.tensor([1, 2]), lz.tensor([True, False]), lz.tensor([1.0, 2.0])
    for total in (lz.add, lz.sub, lz.rsub):
        for y in (whole, 1):
            with pytest.raises(RuntimeError, match=rf"^{total.__name__}: alpha is 1.5; the sum of s64 takes an integer"):
                total(whole, y, alpha=1.5)
        with pytest.raises(RuntimeError, match=r"alpha is 1; the sum of f32 takes a number"):
            total(floats, floats, alpha=True)
        with pytest.raises(RuntimeError, match=r"alpha is \(0\+1j\); the sum of f32 takes a real number"):
            total(floats, floats, alpha=1j)
    assert lz.add(whole, floats, alpha=1.5).tolist() == [2.5, 5.0]
    for y in (~bools, True):
        assert lz.add(bools, y, alpha=2).tolist() == [True, True] and bools.clone().add_(y, alpha=2).tolist() == [True, True]
        assert lz.add(bools, y, alpha=0).tolist() == [True, False] and bools.clone().add_(y, alpha=False).tolist() == [True, False]
    assert lz.add(floats, 1j, alpha=2).tolist() == [1 + 2j, 2 + 2j] and floats.clone().sub_(2, alpha=0.5).tolist() == [0, 1]


def test_a_difference_takes_no_bool():
    x = lz.tensor([1, 2])
    for wrong in (lambda: x - True, lambda: True - x, lambda: x.sub(True), lambda: x.clone().sub_(False), lambda: lz.rsub(x, True)):
        with pytest.raises(RuntimeError, match="sub_?: takes no bool; logical_not or ~ may be meant"):
            wrong()
    with pytest.raises(TypeError, match="matmul: takes two tensors, no number"):
        x @ 2


def test_shapes_are_sizes():
    x = lz.zeros(2, 3, 4)
    assert isinstance(x.shape, lz.Size) and isinstance(x.size(), tuple) and x.shape == (2, 3, 4)
    assert x.shape[1:].numel() == 12 and x.shape[0] == 2 and x.shape + (5,) == (2, 3, 4, 5)
    assert repr(x.shape[:2]) == "lazuli.Size([2, 3])" and (lz.Size([2]) * 2).numel() == 4
    assert lz.zeros(x.shape).shape == lz.Tensor(x.shape).shape == x.shape
    assert pickle.loads(pickle.dumps(x.shape)) == x.shape


def test_old_constructors_and_types():
    assert lz.Tensor(2, 3).shape == (2, 3) and lz.Tensor([1, 2]).dtype == lz.float32 and lz.Tensor().shape == (0,)
    x = lz.FloatTensor([1.5])
    assert isinstance(x, lz.FloatTensor) and not isinstance(x, lz.LongTensor) and isinstance(x, lz.Tensor)
    assert x.type() == "torch.FloatTensor" and x.type("torch.DoubleTensor").dtype == x.type(lz.float64).dtype == lz.float64
    assert x.type(lz.LongTensor).tolist() == [1]
    with pytest.raises(TypeError, match="Tensor: of lazuli.float32 is expected, the data is lazuli.int64"):
        lz.Tensor(lz.tensor([1]))


def test_settings_that_say_nothing():
    lz.backends.cudnn.benchmark = True
    assert not lz.backends.mps.is_available() and not lz.cuda.is_available() and lz.compile(len) is len
    lz.use_deterministic_algorithms(True)
    lz.set_float32_matmul_precision("high")
    assert lz.get_float32_matmul_precision() == "high" and lz.get_num_threads() >= 1
    with pytest.raises(ValueError, match="set_num_threads: expects a positive integer, not 0"):
        lz.set_num_threads(0)
    with lz.autocast("cpu", enabled=False):
        assert (lz.pi, lz.newaxis, lz.dtype) == (np.pi, None, type(lz.float32))
    with pytest.warns(UserWarning, match="GradScaler: there is no GPU, so it is off"):
        assert lz.amp.GradScaler().scale(7) == 7


def test_scaled_losses():
    p = lz.nn.Parameter(lz.ones(1))
    opt, scaler = lz.optim.SGD([p], lr=0.5), lz.amp.GradScaler("cpu", init_scale=4.0, growth_interval=1)
    scaler.scale((p * 2).sum()).backward()
    assert p.grad.item() == 8
    scaler.step(opt)
    scaler.update()
    assert p.item() == 0 and scaler.get_scale() == 8
    p.grad = lz.tensor([float("inf")])
    scaler.step(opt)
    scaler.update()
    assert p.item() == 0 and scaler.state_dict()["scale"] == 4


def test_modules_where_pytorch_has_them():
    from lazuli.nn.modules.module import Module
    from lazuli.nn.modules.utils import _pair
    from lazuli.nn.parameter import Parameter
    from lazuli.utils.data.dataset import Dataset
    from lazuli.utils.data.sampler import SubsetRandomSampler
    assert Module is lz.nn.Module and Parameter is lz.nn.Parameter and _pair(3) == (3, 3) and lz.nn.modules.Linear is lz.nn.Linear
    assert Dataset is lz.utils.data.Dataset and SubsetRandomSampler is lz.utils.data.SubsetRandomSampler
    padded = lz.nn.utils.rnn.pad_sequence([lz.ones(2), lz.zeros(3)], batch_first=True, padding_value=-1)
    assert padded.tolist() == [[1, 1, -1], [0, 0, 0]]
    assert [x.tolist() for x in lz.nn.utils.rnn.unpad_sequence(padded, [2, 3], batch_first=True)] == [[1, 1], [0, 0, 0]]
    x = lz.tensor([-1.0, 2.0])
    assert lz.nn.functional.relu_(x) is x and x.tolist() == [0, 2]


def test_weights_of_matrices():
    w = lz.nn.init.orthogonal_(lz.empty(3, 5), gain=2)
    assert lz.allclose(w @ w.T, 4 * lz.eye(3), atol=1e-5)
    assert lz.nn.init.dirac_(lz.empty(2, 2, 1)).squeeze().tolist() == [[1, 0], [0, 1]]
    assert (lz.nn.init.sparse_(lz.empty(4, 3), 0.5) == 0).sum(0).tolist() == [2, 2, 2]


@pytest.mark.parametrize("call", [
    lambda: lz.pow(input=lz.ones(1), exponent=2), lambda: lz.where(condition=lz.tensor([True]), input=lz.ones(1), other=lz.zeros(1)),
    lambda: lz.ones(1).where(condition=lz.tensor([True]), other=lz.zeros(1)), lambda: lz.ones(1).repeat(repeats=(1,)),
    lambda: lz.split(tensor=lz.ones(2), split_size_or_sections=1, dim=0)[0], lambda: lz.outer(input=lz.ones(1), vec2=lz.ones(1))[0],
    lambda: lz.cdist(x1=lz.ones(1, 1), x2=lz.zeros(1, 1))[0], lambda: F.dropout(input=lz.ones(1), p=0.0),
    lambda: F.cosine_similarity(x1=lz.ones(1), x2=lz.ones(1), dim=0, eps=0.0).reshape(1), lambda: lz.ones(1).requires_grad_(requires_grad=False),
    lambda: nn.init.normal_(tensor=lz.zeros(1), mean=1.0, std=0.0), lambda: nn.init.trunc_normal_(lz.zeros(1), mean=1.0, std=1e-9, a=0.0, b=2.0),
    lambda: nn.init.uniform_(lz.zeros(1), a=1.0, b=1.0, generator=lz.Generator()), lambda: nn.init.constant_(lz.zeros(1), val=1.0),
    lambda: nn.init.kaiming_normal_(lz.zeros(1, 1), a=0, mode="fan_out", nonlinearity="relu", generator=lz.Generator())[0] * 0 + 1,
    lambda: lz.tensor([nn.init.calculate_gain("leaky_relu", param=1.0)]), lambda: lz.from_dlpack(ext_tensor=lz.ones(1), device="cpu", copy=True),
    lambda: nn.Sequential(nn.Identity()).forward(input=lz.ones(1)), lambda: nn.ModuleList(modules=[nn.Identity()])[0](lz.ones(1)),
    lambda: nn.ModuleDict(modules={"a": nn.Identity()})["a"](lz.ones(1)), lambda: nn.ParameterDict(parameters={"a": lz.ones(1)})["a"]])
def test_keywords_are_pytorchs(call):
    assert call().tolist() == [1]


def test_keywords_of_modules_are_pytorchs():
    net, kept = nn.Linear(1, 1), {}
    net.apply(fn=lambda module: kept.update(seen=module))
    assert kept.pop("seen") is net and not net.train(mode=False).training and not net.requires_grad_(requires_grad=False).weight.requires_grad
    net.state_dict(destination=kept, prefix="a.")
    assert list(kept) == ["a.weight", "a.bias"] and net.load_state_dict(state_dict=net.state_dict(), strict=True).missing_keys == []
    steps = nn.Sequential(net).append(module=net).insert(index=0, module=nn.ReLU()).extend(sequential=[net])
    assert len(steps) == 4 and isinstance(steps.pop(key=0), nn.ReLU) and sum(1 for _ in steps.modules(remove_duplicate=False)) == 4
    net.register_buffer(name="kept", tensor=lz.ones(1))
    net.register_parameter(name="more", param=nn.Parameter(lz.ones(1)))
    assert list(net.state_dict()) == ["weight", "bias", "more", "kept"]
    x = lz.zeros(3, requires_grad=True)
    slope, = lz.autograd.grad(outputs=(x * 2).sum(), inputs=x, grad_outputs=None, retain_graph=True, create_graph=True, only_inputs=True)
    assert slope.tolist() == [2, 2, 2]


@pytest.mark.parametrize("call, result", [
    (lambda two: lz.arange(two), [0, 1]), (lambda two: lz.arange(0, two, lz.tensor(0.5)), [0, 0.5, 1, 1.5]),
    (lambda two: lz.full((1,), two), [2]), (lambda two: lz.add(lz.ones(1), lz.ones(1), alpha=two), [3]),
    (lambda two: F.leaky_relu(lz.tensor([-1.0]), two), [-2]), (lambda two: F.threshold(lz.ones(1), two, value=two), [2]),
    (lambda two: lz.ones(1).addcmul(lz.ones(1), lz.ones(1), value=two), [3]), (lambda two: lz.ones(1).clamp(min=two), [2])])
def test_a_tensor_of_rank_0_is_its_number_where_a_number_is_taken(call, result):
    y = call(lz.tensor(2))
    assert y.tolist() == result
    program = lz.metrics.counter("UncachedCompile")
    assert call(lz.tensor(2)).tolist() == result and lz.metrics.counter("UncachedCompile") == program


def test_what_is_no_number_is_not_read():
    for wrong in (lz.ones(2), lz.ones(1), lz.tensor(1.0, requires_grad=True)):
        with pytest.raises(TypeError, match="negative_slope must be float"):
            F.leaky_relu(lz.ones(1), wrong)
        with pytest.raises(TypeError, match="arange: takes"):
            lz.arange(wrong)
    reads = lz.metrics.counter("sync.read")
    bound = lz.tensor(0.0) + 1
    y = lz.zeros(2).clamp(min=bound)  # a tensor is taken here, and stays one
    assert lz.metrics.counter("sync.read") == reads and y.tolist() == [1, 1]


def test_differences_refuse_truths_also_with_a_factor():
    x, yes = lz.tensor([3]), lz.tensor([True])
    for call in (lambda: lz.rsub(yes, 1), lambda: lz.rsub(yes, x, alpha=2), lambda: lz.sub(x, yes, alpha=2), lambda: x - yes):
        with pytest.raises(TypeError, match="sub: takes no pred"):
            call()


def test_defaults_that_are_not_those_of_their_kin():
    x = lz.ones(4, 3, 2)
    assert F.alpha_dropout(x).equal(x) and F.feature_alpha_dropout(x).equal(x) and not F.dropout(x, 0.99).equal(x)
    lazy = nn.LazyInstanceNorm1d()
    lazy(x)
    assert lazy.weight.shape == (3,) and lazy.running_mean.shape == (3,) and nn.InstanceNorm1d(3).weight is None
    assert nn.InstanceNorm1d(3, affine=True, bias=False).bias is None
    loss = nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().sum(1), margin=2.0, swap=True, reduction="sum")
    assert loss(lz.ones(2, 3), lz.zeros(2, 3), lz.full((2, 3), 2.0)).item() == 4
