"""Integer arithmetic is exact: every pair of 8-bit numbers and the edges of wider ones against Python's own integers and NumPy.

LAZULI_INTEGERS=N also draws N pairs of random numbers of each wider dtype.
"""

import os

import numpy as np
import pytest

import lazuli as lz

DRAWN = int(os.environ.get("LAZULI_INTEGERS", "0"))
SIGNED, UNSIGNED = ("int8", "int16", "int32", "int64"), ("uint8", "uint16", "uint32", "uint64")


def numbers(dtype):
    """Every number of 8 bits; of more, what lies at powers of two and at both ends, and some drawn ones."""
    info = np.iinfo(dtype)
    if info.bits == 8:
        return list(range(info.min, info.max + 1))
    near = {p + d for k in (0, 1, 2, 7, 8, 15, 16, 24, 31, 32, 53, 62, 63) for p in (2**k, -(2**k)) for d in (-1, 0, 1)}
    near |= {info.min, info.min + 1, info.max, info.max - 1, 3, -3, 10, -7}
    drawn = np.random.default_rng(info.bits).integers(info.min, info.max, DRAWN, dtype=dtype, endpoint=True).tolist()
    return sorted(n for n in near if info.min <= n <= info.max) + drawn


def grid(dtype, divisor=False):
    """All pairs, flat."""
    values = numbers(dtype)
    x, y = zip(*[(a, b) for a in values for b in values if b or not divisor], strict=True)
    return list(x), list(y)


def wrapped(values, dtype):
    bits = np.iinfo(dtype).bits
    low = np.iinfo(dtype).min
    return [(v - low) % 2**bits + low for v in values]


def power(a, b):
    """b < 0: as 1 / a towards 0, which leaves 1 and -1 alone."""
    return pow(a, b, 2**64) if b >= 0 else {1: 1, -1: -1 if b % 2 else 1}.get(a, 0)


def fmod(a, b):
    return abs(a) % abs(b) * (-1 if a < 0 else 1)


def shifted(a, count, bits):
    """Left by count; right where it is negative."""
    return a << count if count >= 0 else a >> min(-count, bits)


ARITHMETIC = {
    "add": (lambda x, y: x + y, lambda a, b: a + b),
    "sub": (lambda x, y: x - y, lambda a, b: a - b),
    "mul": (lambda x, y: x * y, lambda a, b: a * b),
    "and": (lambda x, y: x & y, lambda a, b: a & b),
    "or": (lambda x, y: x | y, lambda a, b: a | b),
    "xor": (lambda x, y: x ^ y, lambda a, b: a ^ b),
    "maximum": (lz.maximum, max),
    "minimum": (lz.minimum, min),
    "pow": (lambda x, y: x**y, power),
}
DIVISION = {
    "floor_divide": (lambda x, y: x // y, lambda a, b: a // b),
    "remainder": (lambda x, y: x % y, lambda a, b: a % b),
    "fmod": (lz.fmod, fmod),
}
COMPARISONS = {
    "eq": (lambda x, y: x == y, lambda a, b: a == b),
    "ne": (lambda x, y: x != y, lambda a, b: a != b),
    "lt": (lambda x, y: x < y, lambda a, b: a < b),
    "le": (lambda x, y: x <= y, lambda a, b: a <= b),
    "gt": (lambda x, y: x > y, lambda a, b: a > b),
    "ge": (lambda x, y: x >= y, lambda a, b: a >= b),
    "logical_and": (lz.logical_and, lambda a, b: bool(a and b)),
    "logical_or": (lz.logical_or, lambda a, b: bool(a or b)),
    "logical_xor": (lz.logical_xor, lambda a, b: bool(a) != bool(b)),
}


def check(got, expected, x, y=None):
    got = got.numpy()
    expected = np.array(expected, dtype=got.dtype)
    wrong = np.flatnonzero(got != expected)
    at = wrong[0] if wrong.size else 0
    assert not wrong.size, f"of {x[at]}, {y and y[at]}: {got[at]}, not {expected[at]}; {wrong.size} are wrong"


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
def test_operators_are_exact_and_wrap(dtype):
    bits = np.iinfo(dtype).bits
    for divisor, operators in ((False, ARITHMETIC), (True, DIVISION)):
        x, y = grid(dtype, divisor)
        tx, ty = lz.tensor(np.array(x, dtype)), lz.tensor(np.array(y, dtype))
        for function, meaning in operators.values():
            result = function(tx, ty)
            assert result.dtype == tx.dtype
            check(result, wrapped(map(meaning, x, y), dtype), x, y)
    x, y = grid(dtype)
    tx, ty = lz.tensor(np.array(x, dtype)), lz.tensor(np.array(y, dtype))
    for function, meaning in COMPARISONS.values():
        result = function(tx, ty)
        assert result.dtype == lz.bool
        check(result, list(map(meaning, x, y)), x, y)
    left = [shifted(a, b, bits) if 0 <= b < bits else 0 for a, b in zip(x, y, strict=True)]
    right = [shifted(a, -b if 0 <= b < bits else -bits, bits) for a, b in zip(x, y, strict=True)]
    check(tx << ty, wrapped(left, dtype), x, y)
    check(tx >> ty, right, x, y)


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
def test_functions_of_one_operand_are_exact_and_wrap(dtype):
    x = numbers(dtype)
    t = lz.tensor(np.array(x, dtype))
    meanings = {"abs": abs, "neg": lambda a: -a, "sign": lambda a: (a > 0) - (a < 0), "square": lambda a: a * a,
                "bitwise_not": lambda a: ~a, "floor": int, "ceil": int, "round": int, "relu": lambda a: max(a, 0)}
    for name, meaning in meanings.items():
        result = getattr(lz, name)(t)
        assert result.dtype == t.dtype, name
        check(result, wrapped(map(meaning, x), dtype), x)
    check(lz.logical_not(t), [a == 0 for a in x], x)
    for exponent in (0, 1, 2, 3, 7, 39, 40, 64, 2**40 + 1):
        result = t**exponent
        assert result.dtype == t.dtype
        check(result, wrapped([pow(a, exponent, 2**64) for a in x], dtype), x)


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
def test_sums_and_products_are_of_64_bits(dtype):
    x = numbers(dtype)
    t = lz.tensor(np.array(x, dtype))
    assert t.sum().dtype == t.prod().dtype == t.cumsum(0).dtype == lz.int64
    assert t.sum().item() == wrapped([sum(x)], "int64")[0]
    odd = [a | 1 for a in x][:40]
    product = 1
    for a in odd:
        product *= a
    assert lz.tensor(np.array(odd, dtype)).prod().item() == wrapped([product], "int64")[0]
    check(t.cumsum(0), wrapped(np.cumsum(np.array(x, object)).tolist(), "int64"), x)
    assert t.amax().item() == max(x) and t.amin().item() == min(x)
    assert t.argmax().item() == x.index(max(x)) and t.argmin().item() == x.index(min(x))


def test_mixed_integers_are_taken_in_the_type_that_holds_both():
    a, b = np.arange(-128, 128, dtype=np.int8)[:, None], np.arange(256, dtype=np.uint8)
    x, y = lz.tensor(a), lz.tensor(b)
    for function in (lambda p, q: p + q, lambda p, q: p * q, lambda p, q: p < q, lambda p, q: p == q, lambda p, q: p // (q | 1),
                     lambda p, q: p % (q | 1), lambda p, q: p & q):
        got, expected = function(x, y).numpy(), function(a, b)
        assert got.dtype == expected.dtype and (got == expected).all()


def test_an_integer_divided_by_zero_is_an_error_that_names_the_op():
    x, zeros = lz.tensor([5, -5]), lz.tensor([1, 0])
    for function, name in ((lambda p, q: p // q, "floor_divide"), (lambda p, q: p % q, "remainder"), (lz.fmod, "fmod")):
        with pytest.raises(IndexError, match=rf"{name}: an integer is divided by 0 \(integers_test.py:\d+\)"):
            function(x, zeros).numpy()
        with pytest.raises(IndexError, match="divided by 0"):
            function(x, 0).numpy()
        with pytest.raises(IndexError, match="divided by 0"):
            function(x.to(lz.uint8), 256).numpy()  # which is 0 there
    assert np.isnan((x % 0.0).numpy()).all()
    assert (x // 0.0).tolist() == [np.inf, -np.inf]
    assert (x / 0).tolist() == [np.inf, -np.inf]


def test_floats_are_floor_divided_as_python_does():
    values = [1.0, -0.3, 0.1, 3.0, -3.0, 7.5, 1e30, -1e-30, 0.7, 6.0, 5e-324, 123456789.125]
    for dtype in (np.float64, np.float32):
        x, y = (np.array(n, dtype).ravel() for n in np.meshgrid(values, values))
        y = np.where(y == 0, dtype(1), y)
        with np.errstate(all="ignore"):
            expected = x // y
        np.testing.assert_array_equal((lz.tensor(x) // lz.tensor(y)).numpy(), expected)
        np.testing.assert_array_equal((lz.tensor(x) % lz.tensor(y)).numpy(), x % y)
    x = lz.tensor(np.array([np.inf, 1.0, -1.0, 5.0, -1.0, 0.0, np.nan]))
    y = lz.tensor(np.array([3.0, 0.0, np.inf, -np.inf, 0.0, 0.0, 1.0]))
    np.testing.assert_array_equal((x // y).numpy(), [np.nan, np.inf, -1, -1, -np.inf, np.nan, np.nan])
    assert (1 // lz.tensor([0.1])).item() == 9 and (lz.tensor([2049.0], dtype=lz.float16) // 0.3).item() == 6824


def test_integers_to_a_power_stay_integers():
    assert (lz.tensor([3]) ** 39).tolist() == [3**39]
    assert (lz.tensor([3]) ** 41).tolist() == wrapped([3**41], "int64")
    assert lz.square(lz.tensor([2**40 + 1])).tolist() == wrapped([(2**40 + 1) ** 2], "int64")
    assert (2 ** lz.tensor([5, -1, 63])).tolist() == [32, 0, -(2**63)]
    assert (lz.tensor([2, -1, 1]) ** lz.tensor([-1, -3, -2])).tolist() == [0, -1, 1]
    assert (lz.tensor([True, False]) ** 2).tolist() == [1, 0]
    assert (lz.tensor([2]) ** 2.0).dtype == (lz.tensor([2]) ** -1.0).dtype == (2.0 ** lz.tensor([2])).dtype == lz.float32
    with pytest.raises(ValueError, match=r"pow: the power of an integer must be in \[0, 2\^63\), is -1; .*integers_test.py"):
        lz.tensor([3]) ** -1
    x = lz.tensor([3, -4], dtype=lz.int8)
    x **= 3
    assert x.tolist() == [27, -64] and x.dtype == lz.int8
    with pytest.raises(ValueError, match="pow_: the result f32 would be cut to s8"):
        x **= 0.5


def test_a_number_takes_part_as_its_kind_says():
    u8, i8 = lz.tensor([6], dtype=lz.uint8), lz.tensor([5, -5], dtype=lz.int8)
    assert (u8 / -3).tolist() == [-2] and (u8 / 300).tolist() == [np.float32(0.02)] and (-3 / u8).tolist() == [-0.5]
    # Arithmetic wraps ...
    assert (u8 + 300).tolist() == [50] and (u8 * -1).tolist() == [250] and (300 - i8).tolist() == [39, 49]
    assert (i8 + 2**40).tolist() == [5, -5] and (u8 & 300).tolist() == [4] and (lz.tensor([3]) * 2**63).tolist() == [-(2**63)]
    assert u8.clone().add_(300).tolist() == [50]
    # ... but comparisons do not, nor does what becomes an element.
    u200 = lz.tensor([200], dtype=lz.uint8)
    assert [(u200 < 300).item(), (u200 > -1).item(), (u200 == -56).item(), (300 < u200).item()] == [True, True, False, False]
    assert (lz.tensor([2**63 - 1]) > 2**53).item() and not (lz.tensor([2**53 + 1]) == 2**53).item()
    for call in (lambda: lz.where(u8 > 0, u8, 300), lambda: u8.clamp(max=300), lambda: lz.full((2,), 300, dtype=lz.uint8),
                 lambda: u8.fill_(300), lambda: u8.masked_fill(u8 > 0, 300)):
        with pytest.raises(ValueError, match=r"the number 300 does not fit u8 \(integers_test.py:\d+\)"):
            call()
    with pytest.raises(ValueError, match="the number -3 does not fit u8"):
        u8.clamp(min=-3)
    with pytest.raises(ValueError, match="the number 9223372036854775808 does not fit s64"):
        lz.tensor([True]) + 2**63


def test_a_number_is_not_rounded_to_floats_of_16_bits():
    half, rank_0 = lz.tensor([0.0, 1.0, -60000.0], dtype=lz.float16), lz.tensor(0.0, dtype=lz.float16)
    for number in (1e6, 2**63, lz.tensor(1e6)):
        assert (half * number).tolist() == (number * half).tolist() == [0, np.inf, -np.inf]
        assert half.clone().mul_(number).tolist() == [0, np.inf, -np.inf]
        result = rank_0 * number
        assert result.item() == 0 and result.dtype == (lz.float32 if isinstance(number, lz.Tensor) else lz.float16)
    assert (half / 1e6).tolist() == [0, float(np.float16(1e-6)), float(np.float16(-0.06))]
    assert rank_0.clone().mul_(1e6).item() == 0 and half.clone().add_(half, alpha=1e-9).tolist() == half.tolist()


def test_gradients_beside_integers_do_not_wrap():
    x, y = lz.tensor([20, 3, 200], dtype=lz.uint8), lz.tensor([1.0, 2.0, 3.0], requires_grad=True)
    lz.atan2(x, y).sum().backward()
    np.testing.assert_allclose(y.grad.numpy(), [-20 / 401, -3 / 13, -200 / 40009], rtol=1e-6)
    power = lz.tensor([2.0], dtype=lz.float64, requires_grad=True)
    (lz.tensor([3]) ** power).backward()
    assert abs(power.grad.item() - 9 * np.log(3)) < 1e-14


def test_the_gradient_of_prelu_is_that_of_the_branch_taken():
    x = lz.tensor([1.0, -1.0, np.inf], requires_grad=True)
    for slope, expected in ((np.nan, [1, np.nan, 1]), (2.0, [1, 2, 1])):
        weight = lz.tensor([slope], requires_grad=True)
        x.grad = None
        lz.nn.functional.prelu(x, weight).sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), expected)
        assert weight.grad.tolist() == [-1]


def test_numbers_beyond_64_bits_with_sign():
    assert (lz.ones(2) * 2**63).tolist() == [2.0**63] * 2
    assert (lz.ones(2) * (2**64 - 1)).tolist() == [2.0**64] * 2 and (lz.ones(2) * -(2**63)).tolist() == [-(2.0**63)] * 2
    assert lz.full((1,), 2**64 - 1, dtype=lz.uint64).tolist() == [2**64 - 1]
    assert (lz.tensor([1], dtype=lz.uint64) + (2**64 - 2)).tolist() == [2**64 - 1]
    for number in (2**64, -(2**63) - 1):
        with pytest.raises(OverflowError, match="an integer beside a tensor has at most 64 bits; write a larger one as a float"):
            lz.ones(2) * number


# torch's rules: a tensor that has dims says the dtype, unless one of rank 0 is of a higher category.
def test_a_tensor_of_rank_0_gives_way():
    half, wide = lz.ones(2, dtype=lz.float16), lz.tensor(2.0, dtype=lz.float64)
    rows = [(half, wide, "float16"), (wide, half, "float16"), (half[0], wide, "float64"), (half, lz.tensor([2.0]), "float32"),
            (lz.tensor([1], dtype=lz.int8), lz.tensor(300), "int8"), (lz.tensor([True]), lz.tensor(300), "int64"),
            (lz.tensor([1], dtype=lz.int8), wide, "float64"), (lz.tensor([1], dtype=lz.int8), half[0], "float16"),
            (lz.tensor([1.0]), lz.tensor(1j, dtype=lz.complex128), "complex64"),
            (lz.ones(1, dtype=lz.bfloat16), half[0], "bfloat16"), (lz.tensor([1], dtype=lz.int8), lz.tensor(1, dtype=lz.uint64), "int8")]
    for x, y, dtype in rows:
        assert (x * y).dtype == lz.zeros(1, dtype=lz.dtype_of(dtype)).dtype, (x, y)
        if "complex" not in dtype:
            assert lz.where(lz.tensor([True]), x, y).dtype == lz.zeros(1, dtype=lz.dtype_of(dtype)).dtype
    assert (lz.tensor([1], dtype=lz.int8) + lz.tensor(300)).tolist() == [45]
    half.requires_grad = True
    scale = lz.tensor(3.0, requires_grad=True)
    (half * scale).sum().backward()
    assert half.grad.dtype == lz.float16 and scale.grad.dtype == lz.float32 and scale.grad.item() == 2


def test_logic_asks_what_is_not_zero():
    x, y = lz.tensor([0.0, 0.3, np.nan, -2.0]), lz.tensor([1, 0, 0, 2], dtype=lz.int8)
    assert lz.logical_and(x, y).tolist() == [False, False, False, True]
    assert lz.logical_or(x, y).tolist() == [True, True, True, True]
    assert lz.logical_xor(x, y).tolist() == [True, True, True, False]
    assert lz.logical_not(x).tolist() == [True, False, False, False]
    assert lz.logical_and(lz.tensor([1, 2]), lz.tensor([2, 2])).tolist() == [True, True]
    assert lz.logical_and(lz.tensor([1j, 0j]), lz.tensor(3)).tolist() == [True, False]
    assert y.clone().logical_not_().tolist() == [0, 1, 1, 0] and x.clone().logical_and_(y).tolist() == [0, 0, 0, 1]
    assert (lz.tensor([6, 3]) & 2).tolist() == [2, 2] and (~lz.tensor([0, 5])).tolist() == [-1, -6]
    assert (lz.tensor([True, False]) & True).tolist() == [True, False] and (~lz.tensor([True])).tolist() == [False]
    with pytest.raises(ValueError, match="bitwise_and: takes pred or integers, not f32"):
        x & 1
    with pytest.raises(ValueError, match="bitwise_left_shift: takes integers, not f32"):
        x << 1


def test_losses_and_norms_of_integers_are_floats():
    """Values are PyTorch's."""
    f, i, j = lz.nn.functional, lz.tensor([3, -2, 5]), lz.tensor([1, 4, 5])
    b, c = lz.tensor([[True, False, True], [True, True, False]]), lz.tensor([[True, True, False], [False, True, False]])
    for value, expected in (
            (f.margin_ranking_loss(i, j, lz.tensor([1, -1, 1]), margin=0.5, reduction="none"), [0, 0, 0.5]),
            (f.hinge_embedding_loss(lz.tensor([0.5, 2.0]), lz.tensor([True, False]), reduction="none"), [0.5, 2]),
            (f.cosine_embedding_loss(b, c, lz.tensor([1, -1]), reduction="none"), [0.5, 0.70710677]),
            (f.cosine_embedding_loss(b, c, lz.tensor([True, False]), reduction="none"), [0.5, 0]),
            (f.pairwise_distance(lz.tensor([[1, 2]]), lz.tensor([[4, 6]])), [4.9999986])):
        assert value.dtype == lz.float32
        np.testing.assert_allclose(value.numpy(), np.array(expected, np.float32), rtol=2e-6, atol=1e-7)
    image = lz.tensor([[[3, -2], [5, 1]]])
    assert f.local_response_norm(image, 2, alpha=1.0).equal(f.local_response_norm(image.float(), 2, alpha=1.0))
    assert lz.addmv(lz.tensor([1, 2]), lz.tensor([[1, 2], [3, 4]]), lz.tensor([5, 6]), beta=2, alpha=3).tolist() == [53, 121]
    sums = b.sum_to_size(1, 3)
    assert sums.dtype == b[:1].sum_to_size(3).dtype == lz.int64 and sums.tolist() == [[2, 1, 1]]
    assert b.sum_to_size(2, 3).dtype == lz.bool and lz.tensor(True).sum_to_size(()).dtype == lz.int64


def test_numbers_beside_integers_are_cut():
    x = lz.tensor([3, 5])
    assert lz.addcmul(x, x, x, value=0.5).tolist() == [3, 5] and lz.addcmul(x, x, x, value=1.9).tolist() == [12, 30]
    assert lz.addcmul(x, x, x, value=-1.9).tolist() == [-6, -20] and x.addcmul_(x, x, value=2.5).tolist() == [21, 55]
    assert lz.addcmul(lz.tensor([3.0]), x[:1], x[:1], value=0.5).tolist() == [3 + 0.5 * 21 * 21]
