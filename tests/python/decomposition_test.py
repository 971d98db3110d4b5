"""Decompositions: what they give multiplied together, errors that a run finds, gradients next to differences."""

import math

import numpy as np
import pytest

import lazuli as lz
from lazuli.autograd import gradcheck, gradgradcheck

RNG = np.random.default_rng(0)
DTYPES = ("float32", "float64", "complex64", "complex128")
BATCHES = ((), (2,), (0,), (2, 1))


def random(*dims, dtype="float64"):
    x = RNG.normal(size=dims)
    return (x + 1j * RNG.normal(size=dims) if dtype.startswith("complex") else x).astype(dtype)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def positive(*dims, dtype="float64"):
    x = random(*dims, dtype=dtype)
    return x @ adjoint(x) + np.eye(dims[-1], dtype=dtype)


def close(given, expected):
    np.testing.assert_allclose(given.numpy() if isinstance(given, lz.Tensor) else given, expected, rtol=1e-3, atol=1e-3)


def is_identity(x):
    close(x, np.broadcast_to(np.eye(x.shape[-1]), x.shape))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("n", [0, 1, 3])
def test_square_matrices(batch, n, dtype):
    a, s = random(*batch, n, n, dtype=dtype), positive(*batch, n, n, dtype=dtype)
    A, S, la = lz.tensor(a), lz.tensor(s), lz.linalg
    is_identity(la.inv(A) @ A)
    b = random(*batch, n, 2, dtype=dtype)
    close(A @ la.solve(A, lz.tensor(b)), b)
    close(la.det(A), np.linalg.det(a))
    sign, log = la.slogdet(A)
    close(sign * log.exp(), np.linalg.det(a))
    for upper in (False, True):
        L = la.cholesky(S, upper=upper)
        close(L.mH @ L if upper else L @ L.mH, s)
        is_identity(lz.cholesky_inverse(L, upper) @ S)
        close(S @ lz.cholesky_solve(lz.tensor(b), L, upper), b)
    values, vectors = la.eigh(S)
    close((vectors * values.unsqueeze(-2)) @ vectors.mH, s)
    close(la.eigvalsh(S, "U"), values.numpy())
    values, vectors = la.eig(A)
    close(A.to(vectors.dtype) @ vectors, (vectors * values.unsqueeze(-2)).numpy())
    is_identity(la.matrix_exp(A) @ la.matrix_exp(-A))
    hermitian = dtype.startswith("complex")
    LD, pivots = la.ldl_factor(S, hermitian=hermitian)
    close(S @ la.ldl_solve(LD, pivots, lz.tensor(b), hermitian=hermitian), b)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize(("m", "n"), [(3, 3), (4, 2), (2, 4), (0, 2), (2, 0), (1, 1)])
def test_all_matrices(batch, m, n, dtype):
    a, la = random(*batch, m, n, dtype=dtype), lz.linalg
    A, k = lz.tensor(a), min(m, n)
    for full in (False, True):
        U, S, Vh = la.svd(A, full_matrices=full)
        assert U.shape[-1] == (m if full else k)
        close((U[..., :k] * S.unsqueeze(-2)) @ Vh[..., :k, :], a)
        is_identity(U.mH @ U)
        is_identity(Vh @ Vh.mH)
    close(la.svdvals(A), S.numpy())
    for mode in ("reduced", "complete"):
        Q, R = la.qr(A, mode)
        close(Q @ R, a)
        is_identity(Q.mH @ Q)
    close(R.abs(), np.abs(np.triu(R.numpy())))
    P, L, U = la.lu(A)
    close(P @ L @ U, a)
    close(la.lu_factor(A).LU.numpy(), lz.lu(A)[0].numpy())
    if 0 in A.shape:
        return
    pseudo = la.pinv(A)
    close(A @ pseudo @ A, a)
    assert la.matrix_rank(A).eq(k).all()
    raw, tau = lz.geqrf(A)
    close(lz.ormqr(raw, tau, la.qr(A, "r").R if m <= n else la.qr(A, "complete").R), a)


@pytest.mark.parametrize(("call", "message"), [
    (lambda x: lz.linalg.inv(x), r"linalg\.inv: The diagonal element 2 is zero, the inversion could not be completed"),
    (lambda x: lz.linalg.inv(lz.stack([lz.eye(2), x])), r"linalg\.inv: \(Batch element 1\): The diagonal element 2 is zero"),
    (lambda x: lz.linalg.solve(x, x), r"torch\.linalg\.solve: The solver failed because the input matrix is singular"),
    (lambda x: lz.linalg.cholesky(-x), r"linalg\.cholesky: .*the leading minor of order 1 is not positive-definite"),
    (lambda x: lz.linalg.lu_factor(x).LU, r"torch\.linalg\.lu_factor: U\[2,2\] is zero"),
    (lambda x: lz.linalg.svd(x * math.nan).S, r"linalg\.svd: The algorithm failed to converge because the input"),
    (lambda x: lz.linalg.eigvals(x / 0.0), r"input tensor should not contain infs or NaNs"),
    (lambda x: lz.cholesky_inverse(x.tril() - lz.eye(2)), r"cholesky_inverse: The diagonal element 1 is zero"),
    (lambda x: lz.linalg.inv_ex(x, check_errors=True).inverse, r"linalg\.inv_ex: The diagonal element 2 is zero"),
])
def test_failures_are_errors_of_the_read_with_their_line(call, message):
    y = call(lz.ones(2, 2))
    with pytest.raises(lz.linalg.LinAlgError, match=message + r".*decomposition_test\.py"):
        y.tolist()
    assert issubclass(lz.linalg.LinAlgError, lz.Error)


def test_functions_that_end_in_ex_give_the_info():
    x = lz.stack([lz.eye(2), lz.ones(2, 2), -lz.eye(2)])
    assert lz.linalg.inv_ex(x).info.tolist() == [0, 2, 0]
    assert lz.linalg.cholesky_ex(x).info.tolist() == [0, 2, 1]
    assert lz.linalg.lu_factor_ex(x).info.tolist() == [0, 2, 0]
    assert lz.linalg.solve_ex(x, x).info.tolist() == [0, 2, 0]
    assert lz.linalg.ldl_factor_ex(lz.zeros(2, 2)).info.tolist() == 1


def hermitian(x):
    return x + x.mH


REAL, COMPLEX = "float64", "complex128"
# Functions of a matrix whose values depend on no phase.
SMOOTH = {
    "cholesky": lambda x: lz.linalg.cholesky(x @ x.mH + lz.eye(3, dtype=x.dtype)),
    "inv": lz.linalg.inv,
    "solve": lambda x: lz.linalg.solve(x, x[:, :2], left=True),
    "det": lz.linalg.det,
    "slogdet": lambda x: lz.linalg.slogdet(x)[1],
    "sign": lambda x: lz.linalg.slogdet(x)[0],
    "lu": lambda x: lz.linalg.lu(x)[1:],
    "qr": lz.linalg.qr,
    "eigh": lambda x: (lambda e: (e[0], e[1].abs()))(lz.linalg.eigh(hermitian(x))),
    "eigvals": lambda x: lz.linalg.eigvals(x).real.sort()[0],
    "eig": lambda x: lz.linalg.eig(x)[1].abs().sum(-1),
    "svd": lambda x: (lambda u, s, vh: (u.abs(), s, vh.abs(), u[:, :1] @ vh[:1]))(*lz.linalg.svd(x)),
    "pinv": lambda x: lz.linalg.pinv(x[:, :2]),
    "matrix_exp": lz.linalg.matrix_exp,
    "householder_product": lambda x: lz.linalg.householder_product(x[:, :2], x[0, :2]),
    "nuc": lambda x: lz.linalg.matrix_norm(x, "nuc"),
    "spectral": lambda x: lz.linalg.matrix_norm(x, 2),
    "lstsq": lambda x: lz.linalg.lstsq(x[:, :2], x[:, 2:]).solution,
    "power": lambda x: lz.linalg.matrix_power(x, -2),
}


@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_agree_with_differences_twice(name, dtype):
    x = lz.tensor(np.random.default_rng(3).normal(size=(3, 3)).astype(dtype) + (
        1j * np.random.default_rng(4).normal(size=(3, 3)) if dtype == COMPLEX else 0)).requires_grad_()
    assert gradcheck(SMOOTH[name], x, rtol=1e-4, atol=1e-5)
    assert gradgradcheck(SMOOTH[name], x, rtol=1e-4, atol=1e-4)


def test_gradients_of_what_reads_a_triangle_are_symmetric():
    s = lz.tensor(positive(3, 3)).requires_grad_()
    for function in (lambda x: lz.linalg.cholesky(x).sum(), lambda x: lz.linalg.eigh(x)[1].sum()):
        g, = lz.autograd.grad(function(s), s)
        close(g, g.mT.numpy())


@pytest.mark.parametrize(("function", "name"), [
    (lambda x: lz.linalg.svd(x)[0], "svd_backward"),
    (lambda x: lz.linalg.eigh(x)[1], "linalg_eigh_backward"),
    (lambda x: lz.linalg.eig(x)[1], "linalg_eig_backward"),
])
def test_a_loss_that_depends_on_phases_is_an_error(function, name):
    x = lz.tensor(random(3, 3, dtype=COMPLEX)).requires_grad_()
    g, = lz.autograd.grad(function(x).real.sum(), x)
    with pytest.raises(RuntimeError, match=name + ".*specified up to multiplication by e"):
        g.tolist()


@pytest.mark.parametrize("mode", ["r", "complete"])
def test_qr_without_a_gradient(mode):
    x = lz.tensor(random(3, 2)).requires_grad_()
    with pytest.raises(RuntimeError, match="differentia"):
        lz.linalg.qr(x, mode).R.sum().backward()


def test_nearly_low_rank():
    a = random(2, 9, 3) @ random(2, 3, 7)
    U, S, V = lz.svd_lowrank(lz.tensor(a), q=3)
    close((U * S.unsqueeze(-2)) @ V.mT, a)
    U, S, V = lz.pca_lowrank(lz.tensor(a), q=4)
    close((U * S.unsqueeze(-2)) @ V.mT, a - a.mean(-2, keepdims=True))
    s = positive(2, 12, 12)
    for largest in (True, False):
        values, vectors = lz.lobpcg(lz.tensor(s), 2, largest=largest)
        expected = np.linalg.eigvalsh(s)
        close(values, expected[:, ::-1][:, :2] if largest else expected[:, :2])
        close(lz.tensor(s) @ vectors, (vectors * values.unsqueeze(-2)).numpy())


def test_gradients_of_the_determinant_of_a_singular_matrix():
    """The gradient of [[a, b], [c, d]] is [[d, -c], [-b, a]], and that of the sum of its squares twice the matrix."""
    matrices = [[[1.0, 1.0], [1.0, 1.0]], [[3.0, 1.0], [2.0, 4.0]]]
    x = lz.tensor(matrices, dtype=lz.float64, requires_grad=True)
    first, = lz.autograd.grad(lz.linalg.det(x).sum(), x, create_graph=True)
    second, = lz.autograd.grad((first * first).sum(), x)
    np.testing.assert_allclose(first.detach().numpy(), [[[1, -1], [-1, 1]], [[4, -2], [-1, 3]]], atol=1e-14)
    np.testing.assert_allclose(second.numpy(), 2 * np.array(matrices), atol=1e-13)
    x = lz.tensor(matrices[0], dtype=lz.float64, requires_grad=True)
    first, = lz.autograd.grad(lz.linalg.slogdet(x)[1], x, create_graph=True)
    with pytest.raises(lz.linalg.LinAlgError, match=r"linalg\.solve: The solver failed because the input matrix is singular"):
        first.tolist()
