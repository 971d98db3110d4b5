"""Forms in place: every row has one, and assignment to what an index takes is NumPy's."""

import re

import numpy as np
import pytest

import lazuli as lz

X = np.array([[0.25, 1.5, 2.0], [0.75, 3.0, 0.5]], np.float32)
Y = np.array([[0.5, 2.0, 1.5], [1.0, 0.25, 3.0]], np.float32)
INDEX = np.array([[1, 0, 1]])
# What a form takes besides x, where that is not one tensor of x's dims.
ARGUMENTS = {
    "clamp": dict(low=0.5, high=2.0), "cumsum": dict(dim=1), "dropout": dict(p=0.0), "hardtanh": dict(low=0.5, high=2),
    "masked_fill": dict(mask=Y > 1, value=7), "scatter": dict(dim=0, index=INDEX, source=Y[:1]),
    "scatter_add": dict(dim=0, index=INDEX, source=Y[:1]), "index_copy": dict(dim=1, index=INDEX[0, 1:], source=Y[:, :2]),
    "addcdiv": dict(tensor1=Y, tensor2=Y), "addcmul": dict(tensor1=Y, tensor2=Y), "heaviside": dict(values=Y),
    "transpose": dict(dim0=0, dim1=1), "swapaxes": dict(axis0=0, axis1=1), "swapdims": dict(dim0=0, dim1=1), "unsqueeze": dict(dim=1),
    "as_strided": dict(size=(2, 2), stride=(1, 3)),
    "cumprod": dict(dim=1), "index_fill": dict(dim=1, index=INDEX[0, 1:], value=7), "threshold": dict(threshold=0.5, value=2),
    "addmm": dict(mat1=Y[:, :2], mat2=Y[:2]), "addr": dict(vec1=Y[:, 0], vec2=Y[0]),
    "clamp_min": dict(low=0.5), "clamp_max": dict(high=1.0), "renorm": dict(p=2, dim=0, maxnorm=0.5),
    "masked_scatter": dict(mask=Y > 1, source=Y), "mvlgamma": dict(p=1), "put": dict(index=INDEX, source=Y[:1]),
    "scatter_reduce": dict(dim=0, index=INDEX, source=Y[:1], reduce="amax"),
    "index_reduce": dict(dim=1, index=INDEX[0, 1:], source=Y[:, :2], reduce="prod"),
    "lerp": dict(end=Y, weight=0.25), "index_add": dict(dim=1, index=INDEX[0, 1:], source=Y[:, :2]),
}
FORMS = sorted(name[:-1] for name in dir(lz.Tensor) if re.fullmatch(r"[a-z]\w*[a-z\d]_", name) and hasattr(lz, name[:-1])
               and name not in ("bernoulli_", "normal_", "random_", "baddbmm_", "addbmm_", "addmv_", "fill_", "index_put_", "polygamma_", "float_power_"))
# but those that draw, take other ranks or are written by hand


def tensors(values):
    return {name: lz.tensor(v) if isinstance(v, np.ndarray) else v for name, v in values.items()}


@pytest.mark.parametrize("name", FORMS)
def test_a_form_in_place_gives_what_the_function_gives(name):
    function = getattr(lz, name)
    doc = function.__text_signature__ or function.__doc__[len(function.__name__):]
    given = tensors(ARGUMENTS.get(function.__name__, dict(y=Y) if doc.startswith("(x, y") else {}))
    kind = {"logical": "bool", "bitwise": "int32", "gcd": "int32", "lcm": "int32"}.get(name.partition("_")[0], "float32")
    x = lz.tensor(X).to(lz.dtype_of(kind))
    if kind != "float32" and given:
        given = {"y": lz.tensor(Y).to(lz.dtype_of(kind))}
    alias, target = x.detach(), x.clone()
    assert getattr(target, name + "_")(**given) is target
    np.testing.assert_array_equal(target.numpy(), getattr(lz, name)(x, **given).numpy())
    assert alias.tolist() == x.tolist()
    assert "In place: " in getattr(lz.Tensor, name + "_").__doc__


def test_there_are_forms_of_all_elementwise_rows():
    assert {"abs", "erf", "exp", "logical_not", "add", "pow", "maximum", "relu", "clamp", "masked_fill"} <= set(FORMS)
    assert len(FORMS) >= 45


OPERATORS = {"add": "x += y", "sub": "x -= y", "mul": "x *= y", "truediv": "x /= y", "floordiv": "x //= y", "mod": "x %= y",
             "pow": "x **= y", "and": "x &= y", "or": "x |= y", "xor": "x ^= y"}


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_has_a_form_in_place(name):
    x, y = (X > 1, Y > 1) if name in ("and", "or", "xor") else (X.copy(), Y)
    mine = {"x": lz.tensor(x), "y": lz.tensor(y)}
    before, numpys = mine["x"], {"x": x.copy(), "y": y}
    exec(OPERATORS[name], mine)
    exec(OPERATORS[name], numpys)
    assert mine["x"] is before
    np.testing.assert_allclose(mine["x"].numpy(), numpys["x"], rtol=1e-6)


def test_errors_name_the_form_and_the_line():
    with pytest.raises(ValueError, match=r"^exp_: the result f32 would be cut to s64\[2\], .* \(inplace_test.py:\d+\)$"):
        lz.tensor([1, 2]).exp_()
    with pytest.raises(ValueError, match=r"^mul_: f32\[3\] does not broadcast to f32\[2\]"):
        lz.ones(2).mul_(lz.ones(3))
    with pytest.raises(RuntimeError, match="do it under no_grad"):
        lz.tensor([1.0], requires_grad=True).clamp_(0)
    with pytest.raises(TypeError, match="add_: there is no argument 'beta'"):
        lz.ones(2).add_(1, beta=2)
    with pytest.raises(TypeError, match=r"^sub_: alpha is 0.5; the sum of s64 takes an integer \(inplace_test.py:\d+\)$"):
        lz.tensor([1, 2]).sub_(1, alpha=0.5)


# --- assignment

ARRAY = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
ASSIGNED = [np.s_[[0, 2]], np.s_[[2, -3]], np.s_[:, [1, 3]], np.s_[..., [0, 4]], np.s_[1, [0, 2], 1:4], np.s_[[0, 1], [2, 0]],
            np.s_[[0, 1], :, [2, 0]], np.s_[1:, [[0], [3]], [1, 2]], np.s_[[0, 1], ::2, 1:5:3], np.s_[np.array([], np.int64)],
            np.s_[None, [0, 2], 1]]


@pytest.mark.parametrize("index", ASSIGNED, ids=str)
def test_assignment_to_positions_is_numpys(index):
    expected, x = ARRAY.copy(), lz.tensor(ARRAY)
    value = -np.arange(expected[index].size, dtype=np.float32).reshape(expected[index].shape)
    expected[index], x[index] = value, lz.tensor(value)
    np.testing.assert_array_equal(x.numpy(), expected)
    expected[index], x[index] = 7, 7
    np.testing.assert_array_equal(x.numpy(), expected)


MASKS = [ARRAY % 3 == 0, ARRAY[:, :, 0] % 2 == 0, ARRAY[:, 0, 0] > 1, ARRAY > 100]


@pytest.mark.parametrize("mask", MASKS, ids=lambda mask: f"rank{mask.ndim}-{mask.sum()}")
def test_assignment_to_a_mask_is_numpys(mask):
    picked = ARRAY[mask]
    for value in (np.float32(5), -np.arange(picked.size, dtype=np.float32).reshape(picked.shape),
                  np.full(picked.shape[1:], 3, np.float32)):
        expected, x = ARRAY.copy(), lz.tensor(ARRAY)
        expected[mask], x[lz.tensor(mask)] = value, lz.tensor(value)
        np.testing.assert_array_equal(x.numpy(), expected)


def test_assignment_is_seen_by_all_and_is_part_of_the_history():
    x = lz.tensor([1.0, 2.0, 3.0], requires_grad=True)
    v = lz.tensor([10.0, 20.0], requires_grad=True)
    y = x * 1
    alias = y.detach()
    y[[2, 0]] = v
    assert alias.tolist() == [20, 2, 10]
    (y * y).sum().backward()
    assert x.grad.tolist() == [0, 4, 0] and v.grad.tolist() == [20, 40]
    z = x * 1
    saved = z.sin()
    z[z > 1] = 0
    with pytest.raises(RuntimeError, match="sin: a tensor that backward needs was changed in place"):
        saved.sum().backward()
    with pytest.raises(RuntimeError, match=r"index_put_: a leaf tensor .* under no_grad\(\) \(inplace_test.py:\d+\)"):
        x[[0]] = 1
    with lz.no_grad():
        x[[0]] = 1


def test_index_put_adds_up():
    x = lz.zeros(4)
    assert x.index_put_((lz.tensor([0, 2, 0]),), lz.tensor([1.0, 2.0, 3.0]), accumulate=True) is x
    assert x.tolist() == [4, 0, 2, 0]
    assert x.index_put_((lz.tensor([1]),), 9).tolist() == [4, 9, 2, 0]


# As torch has it.
def test_out_gets_the_result():
    x, y = lz.tensor([1.0, 4.0]), lz.tensor([3.0, 2.0])
    out = lz.zeros(2, 2)
    row = out[1]
    assert lz.add(x, y, out=row) is row and out.tolist() == [[0, 0], [4, 6]]
    assert lz.mul(x, 2, out=x) is x and x.tolist() == [2, 8] and lz.exp(x, out=None).shape == (2,)
    values, indices = lz.empty(0), lz.empty(0, dtype=lz.int64)
    assert lz.max(out, 1, out=(values, indices))[0] is values and (values.tolist(), indices.tolist()) == ([0, 6], [0, 1])
    flags = lz.zeros(2)
    assert lz.gt(x, y, out=flags).tolist() == [0, 1] and lz.cat([x, y], out=lz.zeros(4)).tolist() == [2, 8, 3, 2]
    with pytest.warns(UserWarning, match="sqrt: out= has other dims than the result, and is resized to them"):
        assert lz.sqrt(lz.tensor([4.0, 16.0, 25.0]), out=row).tolist() == [2, 4, 5]
    w = lz.ones(2).requires_grad_()
    for call, message in [
            (lambda: lz.exp(x, out=lz.zeros(2, dtype=lz.int64)), "the result f32 would be cut to s64[2]"),
            (lambda: lz.exp(w, out=lz.zeros(2)), "keeps no history where out= is given, but a tensor requires a gradient"),
            (lambda: lz.exp(x, out=w), "keeps no history where out= is given"),
            (lambda: lz.exp(x, out=lz.zeros(1).expand(2)), "is expanded"),
            (lambda: lz.sort(x, out=(lz.zeros(2),)), "sort: out must be a tuple of 2 tensors"),
            (lambda: lz.exp(x, out=3), "exp: out must be Tensor, not int"), (lambda: x.exp(out=x), "exp: ")]:
        with pytest.raises((RuntimeError, TypeError)) as error:
            call()
        assert message in str(error.value)
    with lz.no_grad():
        assert lz.exp(w * 0, out=w).tolist() == [1, 1]


def test_one_value_may_be_written_to_expanded_tensors():
    x = lz.arange(3, dtype=lz.float32)
    x[None].expand(4, 3).fill_(2)
    assert x.tolist() == [2, 2, 2] and x[:1].expand(5).zero_().tolist() == [0] * 5 and x.tolist() == [0, 2, 2]
    with pytest.raises(RuntimeError, match="copy_: f32.4,3. is expanded"):
        x.expand(4, 3).copy_(x)


def test_the_diagonal_is_filled_as_numpy_does():
    for shape, wrap in [((3, 3), False), ((7, 3), False), ((7, 3), True), ((8, 2), True), ((2, 5), True), ((3, 3, 3), False)]:
        expected = np.arange(np.prod(shape), dtype="f4").reshape(shape)
        x = lz.tensor(expected)
        assert x.fill_diagonal_(-5, wrap=wrap) is x
        np.fill_diagonal(expected, -5, wrap=wrap)
        assert x.tolist() == expected.tolist()
    x = lz.zeros(3, 4)
    x[:, 1:].t().fill_diagonal_(1)
    assert x.tolist() == np.eye(3, 4, 1).tolist()
    for bad, message in [(lz.zeros(3), "takes two dims or more"), (lz.zeros(2, 2, 3), "more than two dims must be equal")]:
        with pytest.raises(RuntimeError, match="fill_diagonal_: " + message):
            bad.fill_diagonal_(1)


def test_detach_in_place_ends_the_history():
    w = lz.ones(2).requires_grad_()
    y = w * 2
    z = y * 3
    assert not y.detach_().requires_grad and y.is_leaf and z.requires_grad
    with pytest.raises(RuntimeError, match="detach_: a view has the history of what it is a view of"):
        (w * 2)[:1].detach_()
