"""Tensors as a user of Python meets them."""

import copy
import inspect
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import lazuli as lz


def test_makes_tensors_of_lists_numbers_and_arrays():
    assert lz.tensor([[1.0, 2.0], [3.0, 4.0]]).dtype == lz.float32
    assert lz.tensor([1, 2]).dtype == lz.int64
    assert lz.tensor(True).dtype == lz.bool
    assert lz.tensor(np.ones(3)).dtype == lz.float64
    assert lz.tensor([1, 2], dtype=lz.float16).tolist() == [1.0, 2.0]
    assert lz.tensor([1, 2], dtype=lz.int8).dtype == lz.int8
    assert lz.tensor(3.5, requires_grad=True).requires_grad
    assert lz.tensor([[1, 2], [3, 4]]).shape == (2, 2)
    with pytest.raises(ValueError, match="do its rows differ in length|inhomogeneous"):
        lz.tensor([[1, 2], [3]])


def test_shows_tensors_as_torch_does():
    assert repr(lz.tensor([1.0, 2.0])) == "tensor([1., 2.])"
    assert repr(lz.tensor([[1, 2], [3, 4]])) == "tensor([[1, 2],\n        [3, 4]])"
    assert repr(lz.tensor([0.5, 0.25])) == "tensor([0.5000, 0.2500])"
    assert repr(lz.tensor([True, False])) == "tensor([ True, False])"
    assert repr(lz.tensor(2.5)) == "tensor(2.5000)"
    assert repr(lz.tensor([1.0], dtype=lz.float64)) == "tensor([1.], dtype=lazuli.float64)"
    assert repr(lz.tensor([1.0], requires_grad=True)) == "tensor([1.], requires_grad=True)"
    assert repr(lz.tensor([1.0]).to(lz.bfloat16)) == "tensor([1.], dtype=lazuli.bfloat16)"
    assert repr(lz.zeros(1, device="interpreter")) == "tensor([0.], device='interpreter:0')"
    assert f"{lz.tensor(2.5):.1f}" == "2.5"
    assert repr(lz.float32) == "lazuli.float32"
    assert repr(lz.Device("cpu:0")) == "Device('cpu:0')"


def test_operators():
    x, y = lz.tensor([1.0, 2.0, 3.0]), lz.tensor([4.0, 5.0, 6.0])
    assert (x + y).tolist() == [5, 7, 9]
    assert (1 - x).tolist() == [0, -1, -2]
    assert (2 * x / y).tolist() == pytest.approx([0.5, 0.8, 1.0])
    assert (x**2).tolist() == [1, 4, 9]
    assert (2**x).tolist() == [2, 4, 8]
    assert (x @ y).item() == 32
    assert (-x).tolist() == [-1, -2, -3]
    assert abs(-x).tolist() == [1, 2, 3]
    assert (x < y).tolist() == [True] * 3
    assert (x == 2).tolist() == [False, True, False]
    assert ((x > 1) & (y < 6)).tolist() == [False, True, False]
    assert (~(x > 1)).tolist() == [True, False, False]
    assert (np.float32(2) * x).tolist() == [2, 4, 6]
    assert (x * np.int64(2)).tolist() == [2, 4, 6]
    assert not (x is None) and (x == None) is False  # noqa: E711


def test_a_number_exponent_is_part_of_the_program_as_in_cpp():
    x = lz.ones(5)
    assert "pow(%0), exponent=2" in lz.debug.graph_text(x**2) or "exponent=2" in lz.debug.graph_text(x**2)


def test_operators_in_place_keep_the_object():
    x = lz.tensor([1.0, 2.0])
    alias = x
    x += 1
    x *= lz.tensor([2.0, 3.0])
    x -= 1
    x /= 2
    assert alias is x
    assert x.tolist() == [1.5, 4.0]
    assert x.add_(lz.ones(2), alpha=2) is x
    assert x.tolist() == [3.5, 6.0]
    assert x.fill_(7).zero_().tolist() == [0, 0]
    with pytest.raises(ValueError, match=r"add_: the result f32 would be cut to s64\[2\].*tensor_test.py:\d+"):
        lz.tensor([1, 2]).add_(0.5)


def test_python_numbers_and_containers():
    x = lz.tensor([[1, 2, 3], [4, 5, 6]])
    assert len(x) == 2 and x.ndim == 2 and x.dim() == 2 and x.numel() == 6 and x.size(1) == 3
    assert x.size() == (2, 3)
    assert [row.tolist() for row in x] == [[1, 2, 3], [4, 5, 6]]
    assert float(lz.tensor(2)) == 2.0 and int(lz.tensor(2.75)) == 2 and bool(lz.tensor([1]))
    assert isinstance(lz.tensor(2).item(), int) and isinstance(lz.tensor(2.0).item(), float)
    assert lz.tensor(True).item() is True
    assert lz.tensor(1 + 2j).item() == 1 + 2j
    assert [10, 20, 30][lz.tensor(1)] == 20
    with pytest.raises(ValueError, match=r"item: s64\[2,3\] has 6 elements, not one"):
        bool(x)
    with pytest.raises(TypeError, match="len\\(\\) of a tensor of rank 0"):
        len(lz.tensor(1))
    with pytest.raises(TypeError, match="rank 0"):
        iter(lz.tensor(1))


INDICES = [np.s_[0], np.s_[-1], np.s_[1:], np.s_[:, 1], np.s_[..., -1], np.s_[::2, ::3], np.s_[1:1], np.s_[None, 0],
           np.s_[:, None, 1:4:2], np.s_[1, 2, 3], np.s_[0, ..., None], np.s_[-2:, :, 3:1]]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_indexing_is_numpys(index):
    array = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    np.testing.assert_array_equal(lz.tensor(array)[index].numpy(), array[index])
    assert lz.tensor(array)[index].shape == array[index].shape


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_assignment_by_index_is_numpys(index):
    array = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    x = lz.tensor(array)
    x[index] = -1
    array[index] = -1
    np.testing.assert_array_equal(x.numpy(), array)
    values = np.asarray(np.random.rand(*array[index].shape), np.float32)
    x[index] = lz.tensor(values)
    array[index] = values
    np.testing.assert_array_equal(x.numpy(), array)


def test_wrong_indices_are_named():
    x = lz.zeros(3, 4)
    with pytest.raises(IndexError, match=r"index 3 is out of range for dim 0 of size 3 \(tensor_test.py:\d+\)"):
        x[3]
    with pytest.raises(IndexError, match="3 indices for a tensor of rank 2"):
        x[0, 0, 0]
    with pytest.raises(ValueError, match="step of a slice must be positive, is -1; flip"):
        x[::-1]
    with pytest.raises(TypeError, match="index: takes integers, slices, None, one ... and an array of positions, not str"):
        x["a"]
    assert x[lz.tensor([2, 0])].shape == (2, 4)


def test_functions_are_methods_and_take_dims_one_by_one():
    x = lz.zeros(2, 3)
    assert x.reshape(3, 2).shape == x.reshape((3, 2)).shape == lz.reshape(x, dims=[3, 2]).shape == (3, 2)
    assert x.permute(1, 0).shape == (3, 2) and x.T.shape == (3, 2) and x.t().shape == (3, 2)
    assert x.sum(0, 1).shape == () and x.sum(0, keepdim=True).shape == (1, 3)
    assert lz.ones(2, 3, dtype=lz.int32).dtype == lz.int32
    assert x.exp().log().tolist() == x.tolist()
    values, indices = lz.tensor([[1, 5, 2]]).max(1)
    assert values.tolist() == [5] and indices.tolist() == [1]
    assert lz.cat([x, x], dim=1).shape == (2, 6)
    assert lz.conv2d(lz.ones(1, 1, 5, 5), lz.ones(2, 1, 3, 3), stride=2).shape == (1, 2, 2, 2)
    assert lz.where(x == 0, 1.0, x).sum().item() == 6


def test_signatures_and_documentation_come_from_the_rows():
    assert str(inspect.signature(lz.sum)) == "(x, dims=(), keepdim=False, dtype=None)"
    assert str(inspect.signature(lz.Tensor.sum)) == "(self, /, dims=(), keepdim=False, dtype=None)" or \
        str(inspect.signature(lz.Tensor.sum)) == "(self, dims=(), keepdim=False, dtype=None)"
    assert "sum over dims" in lz.sum.__doc__
    assert lz.exp.__module__ == "lazuli" and lz.Tensor.__module__ == "lazuli"
    assert "bias=None, stride=1, padding=0, dilation=1, groups=1" in str(inspect.signature(lz.conv2d))


def test_wrong_arguments_are_type_errors_that_say_what_is_taken():
    x = lz.zeros(2, 2)
    with pytest.raises(TypeError, match="matmul: y must be Tensor, not numpy.ndarray; convert it by lazuli.tensor"):
        lz.matmul(x, np.zeros((2, 2)))
    with pytest.raises(TypeError, match="sum: there is no argument 'along'; it takes \\(x, dims=\\(\\), keepdim=False, dtype=None\\)"):
        x.sum(along=0)
    with pytest.raises(TypeError, match="reshape: 'dims' is missing"):
        x.reshape()
    with pytest.raises(TypeError, match="square: too many arguments"):
        lz.square(x, x)
    with pytest.raises(TypeError, match="sum: 'x' is given twice"):
        lz.sum(x, x=x)
    with pytest.raises(TypeError, match="add: y must be Tensor | float"):
        lz.add(x, "1")
    with pytest.raises(TypeError, match="unsupported operand"):
        x + "1"
    for mixed in (lambda: np.ones(2) + x, lambda: x * np.ones(2)):
        with pytest.raises(TypeError, match="takes tensors and numbers, not numpy.ndarray; convert it by lazuli.tensor"):
            mixed()
    with pytest.raises(TypeError, match="relu: x must be Tensor, not NoneType"):
        lz.relu(None)


def test_gradients():
    x = lz.tensor([1.0, 2.0], requires_grad=True)
    assert x.grad is None
    (x * x).sum().backward()
    assert x.grad.tolist() == [2, 4]
    x.grad = None
    with lz.no_grad():
        assert not lz.grad_enabled()
        assert not (x * 2).requires_grad
        with lz.enable_grad():
            assert (x * 2).requires_grad
    assert lz.grad_enabled()
    (x * x).backward(lz.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [2, 40]

    @lz.no_grad()
    def frozen():
        return (x * 2).requires_grad

    assert not frozen()
    y = lz.tensor([0.3, 0.4], dtype=lz.float64)
    assert lz.gradcheck(lambda inputs: lz.sin(inputs[0]).sum(), [y]) < 1e-6


def test_pickles_and_copies_by_value():
    x = lz.tensor([1.0, 2.0], dtype=lz.float64)
    y = pickle.loads(pickle.dumps(x))
    assert y.tolist() == [1, 2] and y.dtype == lz.float64 and not y.is_same(x)
    elsewhere = copy.deepcopy(lz.ones(2, device="interpreter").requires_grad_())
    assert elsewhere.tolist() == [1, 1] and elsewhere.device.name == "interpreter:0" and elsewhere.requires_grad
    assert pickle.loads(pickle.dumps(lz.bfloat16)) == lz.bfloat16
    assert lz.ones(2).to(lz.bfloat16).__reduce__()[1][1] == lz.bfloat16


def test_devices_and_dtypes():
    x = lz.ones(2)
    assert x.device == lz.Device() and str(lz.Device("interpreter")) == "interpreter:0"
    y = x.to("interpreter:0")
    assert y.device.name == "interpreter:0" and (y + 1).tolist() == [2, 2]
    assert x.to(y).device == y.device and x.to(np.int32).dtype == lz.int32 and x.to(lz.float64).dtype == lz.float64
    assert lz.float32.itemsize == 4 and lz.float32.is_floating_point and not lz.int8.is_floating_point
    assert lz.Device("cpu") in lz.devices()
    with pytest.raises(RuntimeError, match="tpu.*cpu"):
        lz.zeros(2, device="tpu")
    with pytest.raises(TypeError, match="there is no dtype None"):
        x.to(None)
    assert {x: 1}[x] == 1


def test_seeds_decide_random_numbers():
    lz.manual_seed(3)
    first = lz.rand(4).tolist()
    assert lz.rand(4).tolist() != first
    lz.manual_seed(3)
    assert lz.rand(4).tolist() == first


def test_sum_of_one_number_is_that_number():
    for value in (1 + 2j, 3.5, 7):
        assert lz.tensor(value).sum().item() == value


NARROW = """
import lazuli as lz
lz.manual_seed(3)
x = lz.tensor([1.0, 1.001], requires_grad=True)
y = x * 1
(y * y).sum().backward()
n = lz.tensor([2**31 - 1]) + 1
print(y.dtype, n.dtype, [round(v, 4) for v in y.tolist() + x.grad.tolist()], (lz.tensor([1.0], dtype=lz.float64) / 3).item(), n.item())
print(lz.randint(0, 1000, (4,)).tolist(), lz.randperm(5).tolist(), lz.tensor([1.5]).view(lz.int32).item())
"""


@pytest.mark.parametrize(("flag", "values"), [
    ("LAZULI_DUMP_DIR=", "[1.0, 1.001, 2.0, 2.002] 0.3333333333333333 2147483648"),
    ("XLA_USE_32BIT_LONG=1", "[1.0, 1.001, 2.0, 2.002] 0.3333333333333333 -2147483648"),
    ("XLA_USE_BF16=1", "[1.0, 1.0, 2.0, 2.0] 0.333984375 2147483648"),
    ("XLA_DOWNCAST_BF16=1", "[1.0, 1.0, 2.0, 2.0] 0.3333333432674408 2147483648")])
def test_programs_compute_in_narrow_dtypes_where_tensors_keep_theirs(flag, values):
    env = {**os.environ, **dict([flag.split("=")])}
    shown = subprocess.run([sys.executable, "-c", NARROW], capture_output=True, text=True, timeout=60, env=env, check=True).stdout
    assert shown == f"lazuli.float32 lazuli.int64 {values}\n[82, 391, 735, 962] [3, 0, 2, 1, 4] 1069547520\n"


def test_what_is_put_may_have_leading_dims_of_1():
    for index, dims in ((0, (1, 4)), (slice(0, 2), (1, 2, 4)), ((0, 1), (1, 1)), ((slice(None), 0), (1, 1, 3)), ([0, 2], (1, 1, 2, 4)), (lz.tensor([True, False, True]), (1, 2, 4)),
                        (lz.tensor([True, False, True]), (1, 1, 4)), (..., (1, 1, 3, 4)), ((None, 0), (1, 1, 1, 4))):
        x = lz.zeros(3, 4)
        x[index] = lz.full(dims, 2.0)
        assert x.sum().item() == 2 * lz.ones(3, 4)[index].numel(), (index, dims)
    x = lz.zeros(3, 4)
    with pytest.raises(RuntimeError, match="broadcast"):
        x[0] = lz.ones(2, 4)
    w = lz.ones(1, 4, requires_grad=True)
    y = x.clone()
    y[0] = w
    y.sum().backward()
    assert w.grad.tolist() == [[1, 1, 1, 1]]


def test_numbers_of_one_element():
    for data in ([3], [[3.5]], 3, [True]):
        x = lz.tensor(data)
        assert float(x) == complex(x) == x.item() and int(x) == int(x.item()) and isinstance(complex(x), complex)
    assert complex(lz.tensor([2j])) == 2j and [10, 20, 30][lz.tensor([1])] == 20
    for data in ([3, 4], []):
        for convert in (float, int, complex):
            with pytest.raises(ValueError):
                convert(lz.tensor(data))
    for convert in (float, int):
        with pytest.raises((TypeError, RuntimeError)):
            convert(lz.tensor([2j]))


def test_reversed_goes_along_the_first_dim():
    assert reversed(lz.arange(6).reshape(2, 3)).tolist() == [[3, 4, 5], [0, 1, 2]]
    assert reversed(lz.tensor(1)).item() == 1


def test_a_copy_shares_and_a_deep_copy_does_not():
    x = lz.tensor([1.0, 2.0, 3.0], requires_grad=True)
    shared, parameter = copy.copy(x), copy.copy(lz.nn.Parameter(x.detach()))
    with lz.no_grad():
        shared[0] = 7.0
    assert x.tolist() == parameter.tolist() == [7, 2, 3] and shared.requires_grad and shared.grad is None and isinstance(parameter, lz.nn.Parameter)
    (x * 2).sum().backward()
    deep = copy.deepcopy(x)
    with lz.no_grad():
        deep[0] = 1.0
    deep.grad.zero_()
    assert x.tolist() == [7, 2, 3] and x.grad.tolist() == [2, 2, 2] and deep.requires_grad


def test_a_deep_copy_of_several_shares_what_they_share():
    x = lz.arange(6.0)
    rows, column, again = copy.deepcopy((x, x.view(3, 2)[:, 1], x))
    column[1] = 9.0
    assert rows is again and rows.tolist() == [0, 1, 2, 9, 4, 5] and x.tolist() == [0, 1, 2, 3, 4, 5]
    part = copy.deepcopy(x[2:4])  # before its base
    part.zero_()
    assert part.tolist() == [0, 0] and x.tolist() == [0, 1, 2, 3, 4, 5]
    parts = copy.deepcopy({"part": x[1:3], "whole": x})
    parts["part"].fill_(8.0)
    assert parts["whole"].tolist() == [0, 8, 8, 3, 4, 5]


def test_only_leaves_are_copied_deeply():
    x = lz.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="deepcopy: only leaves are copied"):
        copy.deepcopy(x * 2)
    assert copy.deepcopy(x).requires_grad and copy.deepcopy((x * 2).detach()).tolist() == [2, 2] and copy.copy(x * 2).tolist() == [2, 2]


def test_names_are_no_dtypes():
    for call in (lambda: lz.zeros(2, dtype="float32"), lambda: lz.tensor([1], dtype="float32"), lambda: lz.ones(1).to(dtype="float16"),
                 lambda: lz.ones(1).sum(dtype="float64"), lambda: lz.arange(3, dtype="int32"), lambda: lz.zeros_like(lz.ones(1), dtype="int8"),
                 lambda: lz.set_default_dtype("float32"), lambda: lz.nn.Linear(1, 1, dtype="float64")):
        with pytest.raises((TypeError, ValueError)):  # of a module, as of PyTorch's
            call()
    with pytest.raises((RuntimeError, ValueError)):
        lz.ones(1).to("float16")
    assert lz.dtype_of("float16") == lz.float16 and lz.zeros(1, dtype=float).dtype == lz.float64
