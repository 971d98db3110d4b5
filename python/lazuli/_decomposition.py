"""Decompositions that PyTorch has outside of linalg: those with optional results, random or
iterative ones."""

from lazuli import _C
from lazuli._C import Tensor
from lazuli._types import finfo


def lu(A, pivot=True, get_infos=False, out=None):  # noqa: N803
    """The factors and pivots of linalg.lu_factor(), and with get_infos the infos of
    linalg.lu_factor_ex(). It is not an error if a matrix cannot be factored."""
    made = tuple(_C.linalg.lu_factor_ex(A, pivot))
    made = made if get_infos else made[:2]
    return made if out is None else tuple(o.copy_(m) for o, m in zip(out, made, strict=True))


def _check(name, A, dtypes):  # noqa: N803
    """Raises an error unless A has matrices of one of these dtypes."""
    if not isinstance(A, Tensor):
        raise _C.WrongArgumentError(f"{name}: A must be Tensor, not {type(A).__name__}")
    if A.dtype not in dtypes:
        raise _C.WrongTypeError(f"{name}: takes floats of 32 bits or more, not {A.dtype!r}")
    if A.ndim < 2:
        raise _C.InvalidArgumentError(f"{name}: takes matrices, not {tuple(A.shape)}")


_REAL = (_C.float32, _C.float64)
_ALL = (*_REAL, _C.complex64, _C.complex128)


def _basis(A, q, niter):  # noqa: N803
    """Orthonormal columns [..., m, q] that nearly span A (Halko, Martinsson and Tropp 2011,
    algorithm 4.4)."""
    Q = _C.linalg.qr(A @ _C.randn(A.shape[-1], q, dtype=A.dtype, device=A.device))[0]
    for _ in range(niter):
        Q = _C.linalg.qr(A.mH @ Q)[0]
        Q = _C.linalg.qr(A @ Q)[0]
    return Q


def svd_lowrank(A, q=6, niter=2, M=None):  # noqa: N803
    """U [..., m, q], S [..., q] and V [..., n, q] of matrices that are nearly U diag(S) V^H, by
    random projections. If M is given, A - M is decomposed. More iterations are more exact."""
    _check("svd_lowrank", A, _ALL)
    if M is not None:
        A = A - M.expand(A.shape)
    m, n = A.shape[-2:]
    q = 6 if q is None else q
    if not 0 <= q <= min(m, n):
        raise _C.InvalidArgumentError(f"svd_lowrank: q is {q}, must be from 0 to {min(m, n)}")
    wide = m < n
    if wide:
        A = A.mH
    Q = _basis(A, q, niter)
    U, S, Vh = _C.linalg.svd(Q.mH @ A, full_matrices=False)
    U, V = Q @ U, Vh.mH
    return (V, S, U) if wide else (U, S, V)


def pca_lowrank(A, q=None, center=True, niter=2):  # noqa: N803
    """svd_lowrank() of A [..., m, n]. With `center` the mean of each column is subtracted first. By
    default q is 6, or less for smaller matrices."""
    _check("pca_lowrank", A, _ALL)
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise _C.InvalidArgumentError(f"pca_lowrank: q(={q}) must be non-negative integer and not "
                                      f"greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise _C.InvalidArgumentError(f"pca_lowrank: niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, True) if center else A, q, niter)


def _whitened(S, B, tolerance=1e-12):  # noqa: N803
    """A basis of the span of S that is orthonormal under B. Directions that nearly depend on others
    are left out."""
    gram = S.mH @ (S if B is None else B @ S)
    scale = gram.diagonal(0, -2, -1).real.clamp_min(1e-300).rsqrt()
    values, vectors = _C.linalg.eigh(scale[:, None] * gram * scale[None, :])
    kept = int((values > tolerance * values[-1]).sum())
    return S @ (scale[:, None] * vectors[:, -kept:] * values[-kept:].rsqrt())


def _lobpcg(A, B, X, iK, niter, tol, largest):  # noqa: N803
    """lobpcg() of one matrix (Knyazev 2001): each step takes the best vectors in the span of the
    last vectors, their residuals and the last change."""
    k, sign, parts = X.shape[-1], -1 if largest else 1, [X]
    for step in range(niter + 1):
        basis = _whitened(_C.cat(parts, -1), B)
        values, C = _C.linalg.eigh(sign * (basis.mH @ (A @ basis)))
        last, X, values = X, basis @ C[:, :k], sign * values[:k]  # noqa: N806
        residual = A @ X - (X if B is None else B @ X) * values
        size = A.norm() + values.abs() * (1 if B is None else B.norm())
        if step == niter or bool((residual.norm(dim=-2) < tol * size * X.norm(dim=-2)).all()):
            break
        parts = [X, residual if iK is None else iK @ residual, *([X - last] if step else [])]
    return values, X


def lobpcg(A, k=None, B=None, X=None, n=None, iK=None, niter=None, tol=None,  # noqa: N803
           largest=None, method=None, tracker=None, ortho_iparams=None, ortho_fparams=None,
           ortho_bparams=None):
    """The k largest eigenvalues, or smallest ones if `largest` is False, of symmetric matrices A
    [..., m, m], and their vectors [..., m, k]. With B they solve A x = lambda B x. X has the first
    vectors, iK is a preconditioner. Each step reads its residuals."""
    _check("lobpcg", A, _REAL)
    m = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    if A.shape[-2] != m:
        raise _C.InvalidArgumentError(f"lobpcg: takes square matrices, not {tuple(A.shape)}")
    if m < 3 * (k if n is None else n):
        raise _C.InvalidArgumentError(f"lobpcg: A.shape[-1] is {m}, must be at least 3 * k")
    if method not in (None, "basic", "ortho"):
        raise _C.InvalidArgumentError(f"lobpcg: method is {method!r}, not 'basic' or 'ortho'")
    tol = finfo(A.dtype).eps**0.5 if tol is None else tol
    found = []
    batch = A.shape[:-2]
    flat = [None if t is None else t.expand(*batch, *t.shape[-2:]).reshape(-1, *t.shape[-2:])
            for t in (A, B, X, iK)]
    for i in range(flat[0].shape[0]):
        a, b, x, ik = (None if t is None else t[i] for t in flat)
        if x is None:
            x = _C.randn(m, k if n is None else n, dtype=A.dtype, device=A.device)
        found.append(_lobpcg(a, b, x, ik, 1000 if niter is None or niter < 0 else niter, tol,
                             largest is None or largest))
    values, vectors = (_C.stack([f[j] for f in found]) for j in range(2))
    values, vectors = values[..., :k], vectors[..., :k]
    return values.reshape(*batch, k), vectors.reshape(*batch, m, k)


Tensor.lu = lu
