"""linalg, special and the functions of places and segments: values next to NumPy's, and what they refuse."""

import math

import numpy as np
import pytest

import lazuli as lz

A = np.array([[1.5, -2.0, 0.25], [3.0, 0.5, -1.0]])


@pytest.mark.parametrize("order", [None, 1, -1, 2, -2, np.inf, -np.inf, "fro", "nuc"])
@pytest.mark.parametrize("keepdim", [False, True])
def test_norms_of_matrices(order, keepdim):
    expected = np.linalg.norm(A, order, (0, 1), keepdims=keepdim)
    np.testing.assert_allclose(lz.linalg.norm(lz.tensor(A), order, (0, 1), keepdim).numpy(), expected)
    if order is not None:
        np.testing.assert_allclose(lz.linalg.matrix_norm(lz.tensor(A), order, keepdim=keepdim).numpy(), expected)


@pytest.mark.parametrize("order", [0, 0.5, 1, 2, 3, -1, np.inf, -np.inf])
def test_norms_of_vectors(order):
    x = lz.tensor(A)
    np.testing.assert_allclose(lz.linalg.vector_norm(x, order, -1).numpy(), np.linalg.norm(A, order, -1))
    np.testing.assert_allclose(lz.linalg.vector_norm(x, order).numpy(), np.linalg.norm(A.ravel(), order))
    assert lz.linalg.vector_norm(x, order, dtype=lz.float64).dtype == lz.float64


def test_products():
    x, y, z = (np.arange(n * m, dtype=float).reshape(n, m) - 3 for n, m in ((2, 5), (5, 1), (1, 4)))
    np.testing.assert_allclose(lz.linalg.multi_dot([lz.tensor(t) for t in (x, y, z)]).numpy(), x @ y @ z)
    np.testing.assert_allclose(lz.linalg.multi_dot([lz.tensor(x[0]), lz.tensor(y), lz.tensor(z[0])[:1]]).numpy(), x[0] @ y @ z[0, :1])
    square = np.array([[1.0, 2.0], [0.5, -1.0]])
    for n in (0, 1, 2, 5, -1, -3):
        np.testing.assert_allclose(lz.linalg.matrix_power(lz.tensor(square), n).numpy(), np.linalg.matrix_power(square, n))
    np.testing.assert_allclose(lz.linalg.cross(lz.tensor(A), lz.tensor(A[:1])).numpy(), np.cross(A, A[:1]))
    np.testing.assert_allclose(lz.linalg.vecdot(lz.tensor(A), lz.tensor(A[1])).numpy(), (A * A[1]).sum(-1))
    np.testing.assert_allclose(lz.linalg.vander(lz.tensor(A[0]), N=4).numpy(), np.vander(A[0], 4, increasing=True))


def test_the_diagonal_is_a_view():
    x = lz.zeros(2, 3, 3)
    lz.linalg.diagonal(x).fill_(2.0)
    assert x.sum().item() == 12
    assert x[1, 2, 2].item() == 2


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: lz.linalg.norm(lz.ones(2, 2, 2), 1), RuntimeError, "1D or 2D"),
    (lambda: lz.linalg.vector_norm(lz.ones(2, dtype=lz.int64)), RuntimeError, "floating point or complex"),
    (lambda: lz.linalg.vector_norm(lz.ones(0), math.inf), RuntimeError, "no identity"),
    (lambda: lz.linalg.matrix_power(lz.ones(2, 3), 2), RuntimeError, "square"),
    (lambda: lz.linalg.multi_dot([lz.ones(2)]), RuntimeError, "at least 2"),
    (lambda: lz.linalg.cross(lz.ones(3), lz.ones(2, 3)), RuntimeError, "same number of dimensions"),
])
def test_what_linalg_refuses(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_special_functions():
    s = lz.special
    x = lz.tensor([0.0, 2.0, 9.0], dtype=lz.float64)
    for name, expected in {
        "bessel_j0": [1, 0.22389077914123567, -0.09033361118287613], "bessel_j1": [0, 0.5767248077568734, 0.24531178657332528],
        "bessel_y0": [-math.inf, 0.5103756726497451, 0.24993669827223473], "bessel_y1": [-math.inf, -0.1070324315409375, 0.10431457519767159],
        "modified_bessel_i0": [1, 2.2795853023360673, 1093.5883545113747], "modified_bessel_k0": [math.inf, 0.11389387274953341, 5.0881312956459247e-05],
        "modified_bessel_k1": [math.inf, 0.13986588181652243, 5.3637016379451945e-05], "scaled_modified_bessel_k1": [math.inf, 1.03347684706869, 0.43462524534743463],
        "airy_ai": [0.3550280538878172, 0.03492413042327438, 2.4711684308724894e-09], "spherical_bessel_j0": [1, 0.45464871341284085, 0.04579094280463962],
    }.items():
        np.testing.assert_allclose(getattr(s, name)(x).numpy(), expected, rtol=1e-8, err_msg=name)
    assert s.airy_ai(lz.tensor([-9.0], dtype=lz.float64)).item() == pytest.approx(-0.02213372154734116, rel=1e-11)
    assert s.chebyshev_polynomial_t(x, 3).tolist() == [0, 26, 2889]
    assert s.hermite_polynomial_h(2.0, lz.tensor([0, 1, 2, -1])).tolist() == [1, 4, 14, 0]
    assert s.legendre_polynomial_p(lz.tensor([0.5]), lz.tensor([[2], [3]])).tolist() == [[-0.125], [-0.4375]]
    assert s.shifted_chebyshev_polynomial_u(x, 2).tolist() == [3, 35, 1155]
    assert s.gammainc(lz.tensor([2.0]), lz.tensor([1.0])).item() == pytest.approx(1 - 2 / math.e, rel=1e-6)
    assert s.gammaincc(lz.tensor([2.0]), lz.tensor([40.0])).item() == pytest.approx(41 * math.exp(-40), rel=1e-6)


def test_the_incomplete_gamma_function_has_a_gradient_of_its_second_operand():
    a, x = lz.tensor([2.0, 3.0]), lz.tensor([1.0, 4.0], requires_grad=True)
    lz.igamma(a, x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [math.exp(-1), 8 * math.exp(-4)], rtol=1e-6)
    with pytest.raises(NotImplementedError, match="no gradient of the first operand"):
        lz.igamma(x, a).sum().backward()


def test_histograms():
    x = lz.tensor([0.0, 0.5, 1.0, 2.0, 2.0, 7.0])
    hist, edges = x.histogram(4, range=(0.0, 2.0))
    assert (hist.tolist(), edges.tolist()) == ([1, 1, 1, 2], [0, 0.5, 1, 1.5, 2])
    assert lz.histogram(x, lz.tensor([0.0, 1.0, 3.0]), weight=x).hist.tolist() == [0.5, 5]
    points = np.array([[0.0, 0.0], [1.0, 3.0], [0.2, 3.0], [1.0, 1.0]])
    for density in (False, True):
        expected, bins = np.histogramdd(points, bins=[2, 3], range=[(0, 1), (0, 3)], density=density)
        got = lz.histogramdd(lz.tensor(points), [2, 3], range=[0.0, 1.0, 0.0, 3.0], density=density)
        np.testing.assert_allclose(got.hist.numpy(), expected)
        np.testing.assert_allclose(got.bin_edges[1].numpy(), bins[1])
    with pytest.raises(RuntimeError, match="same shape"):
        lz.histogram(x, 3, weight=lz.ones(2))


def test_segments():
    x = lz.tensor([[1.0, 2.0], [3.0, -4.0], [5.0, 6.0]], requires_grad=True)
    y = lz.segment_reduce(x, "max", lengths=lz.tensor([2, 0, 1]), initial=-1.0)
    assert y.tolist() == [[3, 2], [-1, -1], [5, 6]]
    y.sum().backward()
    assert x.grad.tolist() == [[0, 1], [1, 0], [1, 1]]
    assert lz.segment_reduce(x, "mean", offsets=lz.tensor([0, 2, 3])).tolist() == [[2, -1], [5, 6]]
    assert lz.segment_reduce(x, "sum", lengths=lz.tensor([[1, 1], [0, 2], [2, 0]]), axis=1).tolist() == [[1, 2], [0, -1], [11, 0]]


def test_places_of_images():
    x = lz.arange(6.0).reshape(1, 1, 2, 3)
    same = lz.nn.functional.affine_grid(lz.tensor([[[1.0, 0, 0], [0, 1.0, 0]]]), (1, 1, 2, 3), align_corners=False)
    for mode in ("bilinear", "nearest", "bicubic"):
        np.testing.assert_allclose(lz.nn.functional.grid_sample(x, same, mode=mode, align_corners=False).numpy(), x.numpy(), atol=1e-6)
    outside = lz.tensor([[[[-3.0, 0.0], [0.0, 3.0]]]])
    for padding, expected in {"zeros": [0, 0], "border": [1.5, 4], "reflection": [3.5, 1]}.items():
        np.testing.assert_allclose(lz.nn.functional.grid_sample(x, outside, padding_mode=padding, align_corners=False).numpy().ravel(),
                                   expected, atol=1e-6)
    with pytest.raises(ValueError, match="expected mode to be one of bilinear"):
        lz.nn.functional.grid_sample(x, same, mode="linear")


def test_the_loss_of_ways_through_labels():
    probabilities = lz.tensor([[0.6, 0.4], [0.7, 0.3]])  # of a blank and of the label 1, at two times
    x = probabilities.log().requires_grad_()
    loss = lz.nn.functional.ctc_loss(x.reshape(2, 1, 2), lz.tensor([[1]]), (2,), (1,))
    assert loss.item() == pytest.approx(-math.log(1 - 0.6 * 0.7), rel=1e-6)
    loss.backward()
    share = [0.4 / 0.58, 0.3 / 0.58]  # of the ways with the label there
    np.testing.assert_allclose(x.grad.numpy()[:, 1], [0.4 - share[0], 0.3 - share[1]], rtol=1e-5)
    assert lz.nn.functional.ctc_loss(x.reshape(2, 1, 2), lz.tensor([[1, 1]]), (2,), (2,), zero_infinity=True).item() == 0
    assert lz.nn.functional.ctc_loss(x.reshape(2, 1, 2), lz.tensor([[1, 1]]), (2,), (2,)).item() == math.inf
    assert lz.nn.CTCLoss()(x.reshape(2, 1, 2), lz.tensor([1]), lz.tensor([2]), lz.tensor([1])).item() == pytest.approx(loss.item())


def test_unpooling_to_a_size():
    x = lz.arange(20.0).reshape(1, 1, 4, 5)
    y, where = lz.nn.functional.max_pool2d(x, 2, 2, return_indices=True)
    assert lz.nn.functional.max_unpool2d(y, where, 2, 2, output_size=(4, 5)).sum().item() == y.sum().item()
    with pytest.raises(RuntimeError, match="invalid output_size"):
        lz.nn.functional.max_unpool2d(y, where, 2, 2, output_size=(9, 9))


def test_pools_of_volumes_take_numbers_one_after_the_other():
    f, x = lz.nn.functional, lz.ones(1, 1, 6, 6, 6)
    assert f.lp_pool3d(x, 2.0, 2, 3).shape == f.lp_pool3d(x, 2.0, 2, stride=3).shape == (1, 1, 2, 2, 2)
    assert f.lp_pool3d(x, 2.0, 3, None).shape == (1, 1, 2, 2, 2)
    y, where = f.max_pool3d(x, 2, 2, return_indices=True)
    assert f.max_unpool3d(y, where, 2, 2, 0, output_size=None).shape == (1, 1, 6, 6, 6)
    assert f.fractional_max_pool3d(x, 2, None, 0.5).shape == f.fractional_max_pool3d(x, 2, 3).shape == (1, 1, 3, 3, 3)


def test_places_of_images_that_are_not_finite():
    """As torch's kernels have it: of images NaN, in volumes outside."""
    inf, nan = float("inf"), float("nan")
    x = lz.arange(1.0, 10.0).reshape(1, 1, 3, 3)
    grid = lz.tensor([[v, 0.2] for v in (nan, inf, -inf, 1e10)]).reshape(1, 1, -1, 2)
    first, last = 4.9, 6.9
    for mode, padding, expected in (("bilinear", "zeros", [nan, nan, nan, 0]), ("nearest", "zeros", [0, 0, 0, 0]),
                                    ("bilinear", "border", [last, last, first, last]), ("nearest", "border", [6, 6, 4, 6]),
                                    ("bicubic", "zeros", [nan, nan, nan, 0])):
        y = lz.nn.functional.grid_sample(x, grid, mode, padding, align_corners=False)
        np.testing.assert_allclose(y.numpy().ravel(), expected, rtol=1e-6)
    volume = lz.cat([grid, lz.zeros_like(grid[..., :1])], -1).unsqueeze(1)
    y = lz.nn.functional.grid_sample(x.unsqueeze(2), volume, align_corners=False)
    assert y.flatten().tolist() == [0, 0, 0, 0]
    grid.requires_grad = True
    lz.nn.functional.grid_sample(x, grid, align_corners=False).sum().backward()
    np.testing.assert_allclose(grid.grad.numpy().reshape(-1, 2), [[0, nan], [0, nan], [0, nan], [0, 0]])


def test_histograms_of_one_number_and_of_none():
    for value in (1.0, 1e7, 1e30, 3.4028234e38):
        assert lz.histc(lz.tensor([value]), 4).tolist() == [0, 0, 1, 0]
        assert lz.histc(lz.tensor([value, value]), 3).tolist() == [0, 2, 0]
    for value in (float("inf"), float("nan")):
        for call in (lz.histc, lambda x, bins: lz.histogram(x, bins)[0]):
            with pytest.raises(lz.Error, match="the element at position 1 makes the range of the bins one that is not finite"):
                call(lz.tensor([1.0, value]), 4).tolist()
            lz.sync(True)
    assert lz.histc(lz.tensor([float("nan"), 1.0, 2.0]), 3, 0, 3).tolist() == [0, 1, 1]


def test_a_batch_times_a_matrix_is_one_product():
    """As are its gradients: no matrix is repeated for each sample."""
    x, w = (lz.tensor(np.arange(n, dtype=np.float32).reshape(dims), requires_grad=True) for n, dims in ((24, (2, 3, 4)), (20, (4, 5))))
    y = x @ w
    y.backward(lz.ones_like(y))
    lz.sync()
    assert "batch_dims" not in lz.debug.last_hlo() and lz.debug.last_hlo().count(" dot(") == 3
    np.testing.assert_array_equal(y.detach().numpy(), np.arange(24.0).reshape(2, 3, 4) @ np.arange(20.0).reshape(4, 5))
    np.testing.assert_array_equal(w.grad.numpy(), np.repeat(np.arange(24.0).reshape(6, 4).sum(0)[:, None], 5, 1))
    np.testing.assert_array_equal(x.grad.numpy(), np.broadcast_to(np.arange(20.0).reshape(4, 5).sum(1), (2, 3, 4)))
    assert (lz.ones(2, 0, 3) @ lz.ones(3, 4)).shape == (2, 0, 4) and (lz.ones(2, 3, 0) @ lz.ones(0, 4)).tolist() == [[[0.0] * 4] * 3] * 2
