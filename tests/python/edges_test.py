"""Functions at the edges of their dtypes and of their domains: NaN is not lost, what lies outside of a window does not count, and what
a formula would lose in between is there.

special_values_test.py has the functions of elements one by one; these are values that PyTorch agrees with or gives less of.
"""

import math
import statistics

import numpy as np
import pytest

import lazuli as lz

F = lz.nn.functional
INF, NAN = math.inf, math.nan


@pytest.fixture(params=["cpu:0", "interpreter:0"])
def tensor(request):
    """lz.tensor() on a device, requiring a gradient where the dtype has one."""

    def made(data, dtype=None):
        x = lz.tensor(data, dtype=dtype, device=request.param)
        return x.requires_grad_() if x.is_floating_point() else x

    return made


def gradient(y, x):
    return lz.autograd.grad(y, [x], lz.ones_like(y), retain_graph=True)[0].tolist()


def same(x, expected, rtol=0.0):
    """Equal with the signs of zeros."""
    x = x.detach().numpy() if isinstance(x, lz.Tensor) else np.array(x)
    expected = np.array(expected, x.dtype)
    np.testing.assert_allclose(x, expected, rtol=rtol, atol=0)
    np.testing.assert_array_equal(np.signbit(x[~np.isnan(x)]), np.signbit(expected[~np.isnan(x)]))
    return True


def test_losses_with_a_margin_keep_nan(tensor):
    x, y, one = tensor([NAN, 1.0]), tensor([1.0, 3.0]), tensor([1.0, 1.0])
    assert same(F.margin_ranking_loss(x, y, one, reduction="none"), [NAN, 2])
    assert same(F.hinge_embedding_loss(x, -one, reduction="none"), [NAN, 0])
    a, b = tensor([[NAN, 1.0], [1.0, 0.0]]), tensor([[2.0, 1.0], [1.0, 0.0]])
    assert same(F.cosine_embedding_loss(a, b, -one, margin=0.5, reduction="none"), [NAN, 0.5], 1e-6)
    assert same(F.triplet_margin_loss(a, b, b, reduction="none"), [NAN, 1])
    loss = F.margin_ranking_loss(x, tensor([1.0, 1.0]), one, reduction="none")
    assert gradient(loss, x) == [0, -1]  # of what is 0 it is that of the clamped


def test_windows_of_unequal_sizes_leave_out_what_is_not_in_them(tensor):
    x = tensor([[[[0.0, 0, 2], [0, -1, 0], [-1, 3, 0.5], [NAN, 1, INF]]]])
    y = F.adaptive_avg_pool2d(x, 2)
    assert same(y, [[[[-0.25, 0.25], [NAN, INF]]]])
    assert same(F.interpolate(x, size=(2, 2), mode="area"), y.tolist())
    assert same(gradient(y, x), [[[[0.25, 0.5, 0.25]] * 4]])
    assert same(F.adaptive_avg_pool1d(x[0, 0, 3:], 2), [[NAN, INF]])
    assert same(F.adaptive_avg_pool1d(tensor([[1.0, 2, 3, INF, 5]]), 3), [[1.5, INF, INF]])


def test_norms_of_windows(tensor):
    x = tensor([[[[-3.0, 1], [2, 1]], [[0, 0], [0, 0]]]])
    for pool, z in ((F.lp_pool2d, x), (lambda t, *a: F.lp_pool1d(t.flatten(2), a[0], 4)[..., None], x), (lambda t, p, k: F.lp_pool3d(t[:, :, None], p, (1, k, k))[:, :, 0], x)):
        assert same(pool(z, INF, 2).flatten(), [3, 0])
        assert same(pool(z, -INF, 2).flatten(), [1, 0])
        assert gradient(pool(z, INF, 2), z)[0][0] == [[-1, 0], [0, 0]]
        assert gradient(pool(z, 2.0, 2), z)[0][1] == [[0, 0], [0, 0]]  # the root's is infinite there


def test_the_position_of_nan_in_a_window_is_that_of_the_last(tensor):
    x = tensor([[[1.0, NAN, 0, NAN, 2], [3, 3, 1, 0, 3]]])
    y, at = F.max_pool1d(x, 5, return_indices=True)
    assert same(y, [[[NAN], [3]]]) and at.tolist() == [[[3], [0]]]
    assert gradient(y, x) == gradient(F.max_pool1d(x, 5), x) == [[[0, 0, 0, 1, 0], [1, 0, 0, 0, 0]]]


def test_quantiles_of_small_probabilities(tensor):
    ps = [1e-300, 1e-100, 1e-17, 1e-9, 1e-3, 0.0199, 0.0201, 0.3, 0.5, 0.9, 1 - 1e-9]
    p = tensor(ps, lz.float64)
    x = lz.special.ndtri(p)
    expected = [statistics.NormalDist().inv_cdf(v) for v in ps]
    assert np.allclose(x.detach().numpy(), expected, rtol=1e-13, atol=1e-15)
    assert np.allclose(gradient(x, p)[1:], [math.sqrt(2 * math.pi) * math.exp(v * v / 2) for v in expected[1:]], rtol=1e-11)
    p = tensor([1.401298464324817e-45, -1.401298464324817e-45, 0.0, 1.0, -1.0, 2.0, NAN])
    assert same(lz.special.ndtri(p), [-14.121427, NAN, -INF, INF, NAN, NAN, NAN], 1e-6)


def test_zeta_of_numbers_below_zero_and_its_gradient(tensor):
    s = [2.0, 2.0, 3.0, 3.0, 5.0, 2.0, 4.0, 2.5, 2.0, 2.0]
    q = [-20.5, -0.25, -20.5, -1000.75, -3.125, 0.5, 3.0, -0.5, -3.0, 0.0]

    def zeta(s, q):
        if q <= 0 and q == int(q):
            return INF
        if q < 0 and s != int(s):
            return NAN
        w = q + 2000
        return math.fsum((q + k) ** -s for k in range(2000)) + w ** (1 - s) / (s - 1) + w**-s / 2 + s * w ** (-s - 1) / 12

    y = tensor(q, lz.float64)
    z = lz.special.zeta(lz.tensor(s, dtype=lz.float64).to(y.device), y)
    assert np.allclose(z.detach().numpy(), [zeta(a, b) for a, b in zip(s, q, strict=True)], rtol=1e-12, equal_nan=True)
    slopes = gradient(z, y)
    assert np.allclose(slopes[:7], [-a * zeta(a + 1, b) for a, b in zip(s[:7], q[:7], strict=True)], rtol=1e-12)
    x, step = tensor([2.0, 3.5], lz.float64), 1e-5
    slopes = gradient(lz.special.zeta(x, 1.5), x)
    assert np.allclose(slopes, [(zeta(a + step, 1.5) - zeta(a - step, 1.5)) / (2 * step) for a in (2.0, 3.5)], rtol=1e-7)


def test_polynomials_of_any_degree_where_they_are_known(tensor):
    s, n = lz.special, 10**12 + 1
    x = tensor([1.0, -1.0, 0.0], lz.float64)[:2]
    for name, expected in {"chebyshev_polynomial_t": [1, -1], "chebyshev_polynomial_u": [n + 1, -n - 1], "chebyshev_polynomial_v": [1, -2 * n - 1],
                           "chebyshev_polynomial_w": [2 * n + 1, -1], "legendre_polynomial_p": [1, -1]}.items():
        assert getattr(s, name)(x, n).tolist() == expected
        for degree in (0, 1, 2, 5, 12):  # as the recurrence has it, near by
            assert np.allclose(getattr(s, name)(x, degree).tolist(), getattr(s, name)(x * (1 - 1e-12), degree).tolist(), rtol=1e-8)
    assert s.laguerre_polynomial_l(tensor([0.0]), 1e30).tolist() == s.chebyshev_polynomial_t(tensor([-1.0]), 1e30).tolist() == [1]


def test_powers_of_two_that_are_beyond_the_dtype(tensor):
    most, least = float(np.finfo(np.float32).max), float(np.finfo(np.float32).smallest_subnormal)
    x = tensor([most, INF, least, 0.0, -0.0, 1.0, NAN])
    for n, expected in ((-200, [most * 2.0**-200, INF, 0, 0, -0.0, 0, NAN]), (200, [INF, INF, least * 2.0**200, 0, -0.0, INF, NAN]),
                        (-10**12, [0, INF, 0, 0, -0.0, 0, NAN]), (10**12, [INF, INF, INF, 0, -0.0, INF, NAN]), (3, [INF, INF, 8 * least, 0, -0.0, 8, NAN])):
        assert same(lz.ldexp(x, tensor(n)), expected)
    assert same(gradient(lz.ldexp(x, tensor(-140)), x), [2.0**-140] * 7)
    assert same(lz.ldexp(tensor([1.0, 3.0], lz.float64), tensor([-1074, 1000])), [5e-324, 3 * 2.0**1000])
    assert same(lz.ldexp(tensor([1.0, 3.0], lz.float16), tensor([-24, 12])), [2.0**-24, 3 * 2.0**12])
    assert lz.ldexp(tensor([3, 200], lz.uint8), tensor(-2)).tolist() == [0.75, 50]


def test_zeros_are_above_zero_where_the_function_is(tensor):
    x = tensor([-INF, -1e30, -200.0])
    assert same(F.softplus(x), [0, 0, 0]) and same(F.softplus(-x, -1.0), [-0.0, -0.0, -0.0])
    assert same(F.mish(x[1:]), [-0.0, -0.0])


def test_no_gradient_flows_where_a_bound_or_what_it_bounds_is_nan(tensor):
    x, bound = tensor([NAN, 1.0, 0.0, 2.0, 1.0]), tensor([1.0, NAN, 1.0, 1.0, 1.0])
    for clamp, values, dx, dbound in ((lz.clamp_min, [NAN, NAN, 1, 2, 1], [0, 0, 0, 1, 1], [0, 0, 1, 0, 0]),
                                      (lz.clamp_max, [NAN, NAN, 0, 1, 1], [0, 0, 1, 0, 1], [0, 0, 0, 1, 0])):
        y = clamp(x, bound)
        assert same(y, values) and gradient(y, x) == dx and gradient(y, bound) == dbound
    assert lz.clamp(tensor([1, 5, 9]), tensor([2, 2, 2]), tensor([8, 8, 8])).tolist() == [2, 5, 8]


@pytest.mark.parametrize("dtype", [lz.uint8, lz.int8, lz.int64])
def test_numbers_beside_integers_are_whole_where_the_result_is_float(tensor, dtype):
    x, f = tensor([1, 2, 100], dtype), lz.tensor([1.0, 2.0, 100.0])
    for number in (-1, 300, -300):
        for function in (lz.copysign, lz.xlogy, lz.special.xlog1py, lz.special.zeta):
            assert same(function(x, number).to("cpu"), function(f, float(number)).tolist())


def test_what_is_empty_has_a_history(tensor):
    x = tensor(np.zeros((2, 0), np.float32))
    for y in (lz.inner(x, x), lz.median(x), lz.nanmedian(x)):
        assert y.requires_grad
        y.sum().backward()
        assert x.grad.shape == (2, 0)
    assert lz.inner(x, x).tolist() == [[0, 0], [0, 0]] and lz.inner(x, lz.inner(x.t()[:0], x.t()[:0])[:0].reshape(3, 0).to(x.device)).shape == (2, 3)
    assert math.isnan(lz.median(x).item())


def test_sums_of_truth_values_with_factors():
    x, v = lz.tensor([[True, False], [False, False]]), lz.tensor([False, True])
    assert lz.addr(x, v, v).tolist() == [[True, False], [False, True]]
    assert lz.addr(x, v, v, beta=0).tolist() == [[False, False], [False, True]] and lz.addr(x, v, v, alpha=0).tolist() == x.tolist()


def test_dims_of_numbers_and_powers_of_few():
    one = lz.tensor(3.0)
    assert lz.movedim(one, 0, -1).item() == 3 and lz.moveaxis(one, (), ()).shape == ()
    with pytest.raises(IndexError, match="movedim: dim 1 is out of range"):
        lz.movedim(one, 1, 0)
    x = lz.tensor([2, 3])
    assert lz.vander(x, 1).tolist() == [[1], [1]] and lz.vander(x, 0).shape == (2, 0) and lz.vander(x[:1]).tolist() == [[1]]
    assert lz.vander(lz.tensor([True, False]), 3).tolist() == [[1, 1, 1], [0, 0, 1]] and lz.vander(x, 3, True).tolist() == [[1, 2, 4], [1, 3, 9]]
    with pytest.raises(ValueError, match="N must be 0 or more"):
        lz.vander(x, -1)


@pytest.mark.parametrize("call", [
    "lz.full((2,), 1e39)", "lz.full_like(h, 1e6)", "x.new_full((2,), -1e39)", "x.fill_(1e39)", "h.masked_fill(h > 0, -1e9)", "x.__setitem__(0, 1e39)",
    "x.index_fill(0, lz.tensor([0]), 1e39)", "lz.full((2,), 1e39j)"])
def test_a_number_beyond_the_dtype_does_not_become_infinite(call):
    """As an element; arithmetic goes to infinity, and infinity itself is an element."""
    names = {"lz": lz, "x": lz.ones(2), "h": lz.ones(2, dtype=lz.float16)}
    with pytest.raises(ValueError, match=r"the number .*1e\+?\d+.* does not fit (f16|f32|c64) \(<string>:1\)"):
        eval(call, names)
    assert (names["x"] * 1e39).tolist() == [float("inf")] * 2
    assert lz.full((1,), -float("inf"), dtype=lz.float16).item() == -float("inf")


@pytest.mark.parametrize("call", [lz.linspace, lz.logspace])
def test_bools_are_not_counted_in(call):
    with pytest.raises(TypeError, match=f"{call.__name__}: counts in numbers, not in pred"):
        call(0, 1, 3, dtype=lz.bool)


@pytest.mark.parametrize("call, error, message", [
    (lambda b: F.relu6(b), TypeError, r"relu6: takes numbers, not pred\[2\]"), (lambda b: F.hardtanh(b), TypeError, r"hardtanh: takes numbers, not pred\[2\]"),
    (lambda b: lz.ones(4, 0).unflatten(1, (2**62, 100, -1)), ValueError, r"unflatten: f32\[4,4611686018427387904,100,0\] is larger than"),
    (lambda b: lz.ones(4, 0).reshape(2**62, 100, 0), ValueError, r"reshape: f32\[4611686018427387904,100,0\] is larger than"),
    (lambda b: lz.ones(2).new_empty_strided((2**62,), (0,)), ValueError, r"as_strided: f32\[4611686018427387904\] is larger than"),
    (lambda b: lz.ones(5, 8, 3).mvlgamma(2**31), ValueError, r"mvlgamma: f64\[5,8,3,2147483648\] is larger than"),
    (lambda b: lz.ones(4, 0).view(0, 2**62), ValueError, r"view: f32\[0,4611686018427387904\] is larger than")])
def test_what_the_call_knows_is_an_error_of_the_call(call, error, message):
    with pytest.raises(error, match=message):
        call(lz.tensor([True, False]))


def test_gradients_at_the_edges():
    """Of frexp of floats of 8 bits, and of a result without elements."""
    x = lz.tensor([1.5, -3.0], dtype=lz.float32).to(lz.f8e4m3fn).requires_grad_()
    mantissa, exponent = lz.frexp(x)
    mantissa.float().sum().backward()
    assert mantissa.float().tolist() == [0.75, -0.75] and exponent.tolist() == [1, 2] and x.grad.float().tolist() == [0.5, 0.25]
    y = lz.ones(1, 5, 2, requires_grad=True)
    z = F.max_unpool1d(y, lz.zeros(1, 5, 2, dtype=lz.int64), 1, padding=1)
    z.sum().backward()
    assert z.shape == (1, 5, 0) and (y.grad == 0).all()
