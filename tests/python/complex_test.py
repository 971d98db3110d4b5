"""Complex numbers: beside Python's, in every op that has them, and their gradients, which are PyTorch's: of a real loss L of z = a + ib
dL/da + i dL/db."""

import numpy as np
import pytest

import lazuli as lz

Z = np.array([0.5 + 1.5j, -1.25 + 0.75j, 2.0 - 0.5j])
W = np.array([1.5 - 0.25j, 0.5 + 1j, -0.75 + 2j])
FUNCTIONS = {
    "add": lambda z, w: z + w, "sub": lambda z, w: z - w, "mul": lambda z, w: z * w, "div": lambda z, w: z / w, "pow": lambda z, w: z**w,
    "square": lambda z, w: z**2, "cube": lambda z, w: z**3, "root": lambda z, w: lz.sqrt(z), "exp": lambda z, w: lz.exp(z),
    "log": lambda z, w: lz.log(z), "sin": lambda z, w: lz.sin(z), "cos": lambda z, w: lz.cos(z), "tan": lambda z, w: lz.tan(z),
    "tanh": lambda z, w: lz.tanh(z), "sinh": lambda z, w: lz.sinh(z), "cosh": lambda z, w: lz.cosh(z),
    "sigmoid": lambda z, w: lz.sigmoid(z), "reciprocal": lambda z, w: 1 / z, "neg": lambda z, w: -z, "abs": lambda z, w: abs(z) + 0 * w,
    "conj": lambda z, w: z.conj() * w, "angle": lambda z, w: z.angle() + 0 * w, "number": lambda z, w: (2 - 1j) * z + 0.5j,
    "sum": lambda z, w: (z * w).sum(), "mean": lambda z, w: (z * w).mean(), "prod": lambda z, w: (z * w).prod(),
    "cumsum": lambda z, w: (z * w).cumsum(0), "where": lambda z, w: lz.where(lz.tensor([True, False, True]), z, w),
    "matmul": lambda z, w: lz.outer(z, w) @ w, "index": lambda z, w: z[1:] * w[:2], "lerp": lambda z, w: lz.lerp(z, w, 0.25),
    "addcmul": lambda z, w: lz.addcmul(z, z, w, value=2),
    "fft": lambda z, w: lz.fft.fft(z * w), "ifft": lambda z, w: lz.fft.ifft(z * w, n=4), "irfft": lambda z, w: lz.fft.irfft(z * w),
    "irfft_odd": lambda z, w: lz.fft.irfft(z * w, n=5, norm="ortho"), "hfft": lambda z, w: lz.fft.hfft(z * w, norm="forward"),
    "irfft2": lambda z, w: lz.fft.irfft2(lz.outer(z, w), s=(3, 5))}


def loss(function, z, w):
    """A real number with both parts of all results."""
    y = function(z, w)
    return (abs(y * (1 + 0.5j) + (0.25 - 1j)) ** 2).sum()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_those_of_differences(name):
    z, w = (lz.tensor(v, requires_grad=True) for v in (Z, W))
    loss(FUNCTIONS[name], z, w).backward()
    step = 1e-6
    for which, tensor in enumerate((z, w)):
        expected = np.zeros_like(Z)
        for i in range(len(Z)):
            for unit in (1, 1j):
                ends = []
                for sign in (1, -1):
                    moved = [Z.copy(), W.copy()]
                    moved[which][i] += sign * step * unit
                    ends.append(loss(FUNCTIONS[name], *(lz.tensor(m) for m in moved)).item())
                expected[i] += unit * (ends[0] - ends[1]) / (2 * step)
        got = np.zeros_like(Z) if tensor.grad is None else tensor.grad.numpy()
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-7, err_msg=f"operand {which}")


def test_a_real_operand_has_a_real_gradient():
    x, z = lz.tensor([1.0, 2.0], requires_grad=True), lz.tensor([1j, 2 - 1j])
    (abs(x * z) ** 2).sum().backward()
    assert x.grad.dtype == lz.float32
    np.testing.assert_allclose(x.grad.numpy(), [2, 20], rtol=1e-6)
    with pytest.raises(RuntimeError, match="is complex; pass the gradient of the result"):
        (x * z).sum().backward()


def test_numbers_stand_beside_tensors():
    for dtype, result in (("float32", "complex64"), ("float64", "complex128"), ("int32", "complex64"), ("complex128", "complex128")):
        x = lz.tensor([1, 2], dtype=lz.dtype_of(dtype))
        for y, expected in ((x + 1j, [1 + 1j, 2 + 1j]), (2j * x, [2j, 4j]), (x - (1 + 1j), [-1j, 1 - 1j])):
            assert y.dtype.name == result and y.tolist() == expected
    z = lz.tensor([1 + 2j])
    assert (z * 2.5).tolist() == [2.5 + 5j] and (z == 1 + 2j).tolist() == [True] and lz.full((2,), 1j, dtype=lz.complex64).tolist() == [1j, 1j]
    z *= 1j
    assert z.tolist() == [-2 + 1j] and (z**2).tolist() == [3 - 4j]
    with pytest.raises(RuntimeError, match="the result c64 would be cut to f32"):
        lz.ones(2).mul_(1j)
    with pytest.raises(TypeError, match=r"the number \(0\+1j\) does not fit f32"):
        lz.ones(2).fill_(1j)
    program = lz.metrics.counter("UncachedCompile")
    for number in (1j, 2 - 3j):
        assert (lz.ones(3) * number).tolist() == [number] * 3
    assert lz.metrics.counter("UncachedCompile") == program + 1  # a number is a slot


def test_powers_of_two_of_infinite_numbers():
    z = lz.tensor([complex(np.inf, 0), complex(-np.inf, 0), complex(-np.inf, 2)]).exp2()
    assert z.tolist() == [np.inf, 0, 0]


def test_parts():
    z = lz.complex(lz.tensor([1.0, -2.0]), lz.tensor([3.0, 0.0]))
    assert z.tolist() == [1 + 3j, -2] and z.conj().tolist() == [1 - 3j, -2] and lz.isreal(z).tolist() == [False, True]
    np.testing.assert_allclose(lz.polar(abs(z), z.angle()).numpy(), z.numpy(), rtol=1e-6, atol=1e-6)
    assert lz.isinf(lz.tensor([complex(1, np.inf), 1j])).tolist() == [True, False]
    assert lz.isfinite(lz.tensor([complex(1, np.inf), 1j])).tolist() == [False, True] and z.dtype.to_real() == lz.float32
    with pytest.raises(TypeError, match=r"complex: takes parts that are both f32 or both f64, not f32\[1\] and f64\[1\]"):
        lz.complex(lz.tensor([1.0]), lz.tensor([1.0], dtype=lz.float64))


def test_logarithms_of_sums_of_equal_numbers_share_their_gradient():
    x, y = (lz.tensor([1 + 2j], requires_grad=True) for _ in range(2))
    both = lz.logaddexp(x, y)
    np.testing.assert_allclose(both.tolist(), [1 + np.log(2) + 2j], rtol=1e-6)
    assert [g.tolist() for g in lz.autograd.grad(both, [x, y], lz.ones(1, dtype=lz.complex64))] == [[0.5], [0.5]]
    z = lz.full((3,), 1 + 2j).requires_grad_()
    gradient, = lz.autograd.grad(lz.logcumsumexp(z, 0), [z], lz.ones(3, dtype=lz.complex64))
    np.testing.assert_allclose(gradient.tolist(), [11 / 6, 5 / 6, 1 / 3], rtol=1e-5)


def test_addr_of_complex_numbers_keeps_their_imaginary_parts():
    y = lz.tensor([1j, 2j]).addr(lz.ones(2), lz.tensor([1, 2]), beta=2)
    assert y.dtype == lz.complex64 and y.tolist() == [[1 + 2j, 2 + 4j]] * 2


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_both_devices_have_the_same_bits_where_parts_are_zero_huge_or_no_numbers(dtype):
    parts = [0.0, -0.0, 1.0, -2.0, 0.5, np.inf, -np.inf, np.nan, 1e30, -1e-30, 100.0, -720.0]
    z = np.array([complex(a, b) for a in parts for b in parts], dtype)
    for name in "exp expm1 log log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid".split():
        values = [getattr(lz, name)(lz.tensor(z, device=device)).numpy() for device in ("cpu:0", "interpreter:0")]
        for part in (np.real, np.imag):
            x, y = (part(v) for v in values)
            np.testing.assert_array_equal(x, y, name)
            there = ~np.isnan(x)
            np.testing.assert_array_equal(np.signbit(x[there]), np.signbit(y[there]), name)
