#!/usr/bin/env python3
"""SciPy, NumPy and mpmath judge linear algebra, Fourier transforms and distributions, which PyTorch alone does not.

    scipy_test.py FOLDER      FOLDER holds the package lazuli, as build/PRESET/python does

Matrices have condition numbers from 1 to 1e12 and sizes from 0 to 300, also in batches, of which some are empty: an error may be as large
as the condition makes the rounding of the elements. mpmath gives digits where doubles do not have them. SciPy is part of JAX's
requirements, mpmath of PyTorch's.
"""

import os
import sys
import warnings

import mpmath
import numpy as np
import scipy.fft
import scipy.linalg
import scipy.stats
from cases import report

sys.path.insert(0, sys.argv[1])
os.environ.setdefault("LAZULI_RECOMPILE_WARNING", "0")
import lazuli as lz  # noqa: E402
import lazuli.distributions as ld  # noqa: E402

warnings.simplefilter("ignore")
SIZES = (0, 1, 2, 17, 33, 300)
CONDITIONS = (1.0, 1e4, 1e12)
DTYPES = ("float32", "float64", "complex64", "complex128")


def orthogonal(rng, n, is_complex):
    x = rng.normal(size=(n, n)) + (1j * rng.normal(size=(n, n)) if is_complex else 0)
    return np.linalg.qr(x)[0] if n else x


def matrix(n, condition, dtype, positive=False):
    """A matrix of this condition number, in 64 bits, whose elements the dtype holds."""
    rng = np.random.default_rng([n, int(np.log10(condition))])
    u = orthogonal(rng, n, "complex" in dtype)
    v = u if positive else orthogonal(rng, n, "complex" in dtype)
    made = ((u * np.geomspace(1, 1 / condition, n) if n else u) @ v.conj().T).astype(dtype)
    if positive:
        made = (made + made.conj().T) / 2
    return made.astype("complex128" if "complex" in dtype else "float64")


def near(ours, theirs, bound, what):
    """Within a bound of the size of what is right."""
    ours, theirs = np.asarray(ours.numpy() if isinstance(ours, lz.Tensor) else ours), np.asarray(theirs)
    assert ours.shape == theirs.shape, f"{what}: {ours.shape} instead of {theirs.shape}"
    if theirs.size:
        far = np.max(np.abs(ours - theirs)) / max(np.max(np.abs(theirs)), 1e-300)
        assert far <= bound, f"{what}: {far:.2e} from what is right, more than {bound:.2e}"


# name: (lazuli's, SciPy's, the power of the condition number in the error, positive definite)
LINALG = {
    "inv": (lz.linalg.inv, scipy.linalg.inv, 1, False),
    "solve": (lambda a: lz.linalg.solve(a, a[..., :1].sum(-1, True) + 1), lambda a: scipy.linalg.solve(a, a[:, :1] + 1), 1, False),
    "cholesky": (lz.linalg.cholesky, lambda a: scipy.linalg.cholesky(a, lower=True), 1, True),
    "slogdet": (lambda a: lz.linalg.slogdet(a)[1] - 9, lambda a: np.linalg.slogdet(a)[1] - 9, 1, False),  # which is not 0
    "svdvals": (lz.linalg.svdvals, scipy.linalg.svdvals, 0, False),
    "eigvalsh": (lz.linalg.eigvalsh, scipy.linalg.eigvalsh, 0, True),
    "norm of order 2": (lambda a: lz.linalg.matrix_norm(a, 2), lambda a: np.linalg.norm(a, 2), 0, False),
    "nuclear norm": (lambda a: lz.linalg.matrix_norm(a, "nuc"), lambda a: np.linalg.norm(a, "nuc"), 0, False),
    "cond": (lz.linalg.cond, lambda a: np.linalg.cond(a), 1, False),
    "pinv": (lambda a: lz.linalg.pinv(a, rtol=0.0), lambda a: np.linalg.pinv(a, rcond=0.0), 1, False),
    "matrix_exp": (lz.linalg.matrix_exp, scipy.linalg.expm, 0, False),
    "matrix_power": (lambda a: lz.linalg.matrix_power(a, 3), lambda a: np.linalg.matrix_power(a, 3), 0, False),
    "solve_triangular": (lambda a: lz.linalg.solve_triangular(lz.triu(a) + 2 * lz.eye(a.shape[-1], dtype=a.dtype), a, upper=True),
                         lambda a: scipy.linalg.solve_triangular(np.triu(a) + 2 * np.eye(len(a)), a), 0, False),
    "qr": (lambda a: (lambda q, r: q @ r)(*lz.linalg.qr(a)), lambda a: a, 0, False),
    "lu": (lambda a: (lambda p, l, u: p.to(a.dtype) @ l @ u)(*lz.linalg.lu(a)), lambda a: a, 0, False),
    "eig": (lambda a: (lambda w, v: (v * w[..., None, :]) @ lz.linalg.inv(v))(*lz.linalg.eig(a)), lambda a: a.astype(complex), 1, True),
}
NOT_EMPTY = {"norm of order 2", "cond", "solve"}  # which NumPy, or a column, has not


def linalg_case(name):
    def check():
        function, judge, power, positive = LINALG[name]
        for dtype in DTYPES:
            eps = float(np.finfo(dtype).eps)
            for n in (SIZES if dtype == "float64" else (5,)):
                if n == 0 and name in NOT_EMPTY:
                    continue
                for condition in CONDITIONS:
                    bound = 200 * max(n, 1) * eps * condition ** power
                    if bound > 0.1:
                        continue
                    a = matrix(n, condition, dtype, positive)
                    near(function(lz.tensor(a.astype(dtype))), judge(a), bound, f"{dtype}, {n} x {n}, condition {condition:.0e}")
    return check


def batches():
    """A batch gives what its matrices give, and an empty one nothing."""
    for name, (function, _, _, positive) in LINALG.items():
        rows = [matrix(4, c, "float64", positive) for c in (1.0, 10.0, 100.0)]
        whole = function(lz.tensor(np.stack(rows)))
        for one, row in zip(whole.unbind(0), rows, strict=True):
            near(one, function(lz.tensor(row)).numpy(), 1e-11, f"{name} in a batch")
        for dims in ((0, 4, 4), (2, 0, 4, 4)):
            empty = function(lz.zeros(dims, dtype=lz.float64))
            assert tuple(empty.shape) == (*dims[:-2], *whole.shape[1:]), f"{name} of no matrices: {tuple(empty.shape)}"


def least_squares():
    for m, n in ((0, 0), (5, 0), (3, 3), (7, 3), (3, 7), (60, 20)):
        rng = np.random.default_rng([m, n])
        a, b = rng.normal(size=(m, n)), rng.normal(size=(m, 2))
        theirs = scipy.linalg.lstsq(a, b)[0] if a.size else np.zeros((n, 2))
        for driver in ("gelsd", "gelsy", "gelss"):
            near(lz.linalg.lstsq(lz.tensor(a), lz.tensor(b), driver=driver)[0], theirs, 1e-11, f"lstsq {m} x {n}, {driver}")


def exact():
    """What mpmath has with 50 digits."""
    mpmath.mp.dps = 50
    for n in (2, 5, 8):
        hilbert = scipy.linalg.hilbert(n)
        whole = mpmath.matrix(hilbert.tolist())
        near(lz.linalg.slogdet(lz.tensor(hilbert))[1], float(mpmath.log(mpmath.det(whole))), 1e-16 * np.linalg.cond(hilbert), f"slogdet {n}")
        near(lz.linalg.inv(lz.tensor(hilbert)), np.array((whole ** -1).tolist(), float), 1e-16 * n * np.linalg.cond(hilbert), f"inv {n}")
        near(lz.linalg.svdvals(lz.tensor(hilbert)), sorted((float(s) for s in mpmath.svd_r(whole, compute_uv=False)), reverse=True), 1e-15, "svdvals")
    growing = np.array([[-49.0, 24.0], [-64.0, 31.0]])  # of Moler and Van Loan (1978)
    near(lz.linalg.matrix_exp(lz.tensor(growing)), np.array(mpmath.expm(mpmath.matrix(growing.tolist())).tolist(), float), 1e-13, "matrix_exp")
    x = np.random.default_rng(0).normal(size=31)
    right = [complex(mpmath.fsum(mpmath.mpf(v) * mpmath.expjpi(mpmath.mpf(-2 * k * i) / 31) for i, v in enumerate(x))) for k in range(31)]
    near(lz.fft.fft(lz.tensor(x)), right, 2e-16 * 8, "fft of 31")
    for concentration in (1e-3, 0.5, 30.0, 1e5):
        value = concentration * 1.1
        right = mpmath.mpf(concentration - 1) * mpmath.log(value) - mpmath.mpf(value) - mpmath.loggamma(concentration)
        near(ld.Gamma(lz.tensor(concentration, dtype=lz.float64), 1.0).log_prob(lz.tensor(value, dtype=lz.float64)), float(right),
             1e-10, f"Gamma({concentration})")


def transforms():
    """Any length: powers of two, products, primes, along any dim, with every norm."""
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 30, 37, 1009, 4096):
        x = rng.normal(size=(2, n))
        z = x + 1j * rng.normal(size=(2, n))
        for dtype, bound in (("float32", 3e-6), ("float64", 1e-14)):
            kind = {"float32": "complex64", "float64": "complex128"}[dtype]
            for name in ("fft", "ifft", "rfft", "ihfft", "hfft", "irfft"):
                given = (x.astype(dtype) if name in ("rfft", "ihfft") else z.astype(kind))
                if name in ("hfft", "irfft") and n == 1:
                    continue  # of no elements
                for norm in ("backward", "ortho", "forward"):
                    near(getattr(lz.fft, name)(lz.tensor(given), norm=norm), getattr(scipy.fft, name)(given, norm=norm), bound, f"{name} {dtype} {n}")
    block = rng.normal(size=(3, 4, 5, 6)) + 1j * rng.normal(size=(3, 4, 5, 6))
    for name in ("fft2", "ifft2", "fftn", "ifftn", "irfftn", "irfft2"):
        for axes in ((0, 1), (1, 3), (-1, 0)):
            near(getattr(lz.fft, name)(lz.tensor(block), dim=axes), getattr(scipy.fft, name)(block, axes=axes), 1e-14, f"{name} {axes}")
    near(lz.fft.rfftn(lz.tensor(block.real), dim=(0, 2)), scipy.fft.rfftn(block.real, axes=(0, 2)), 1e-14, "rfftn")
    near(lz.fft.fftfreq(9, d=0.5), scipy.fft.fftfreq(9, 0.5).astype("float32"), 1e-7, "fftfreq")
    near(lz.fft.fftshift(lz.tensor(block.real)), scipy.fft.fftshift(block.real), 0, "fftshift")


def t(*values):
    return lz.tensor(values, dtype=lz.float64)


# lazuli's distribution, SciPy's, and elements of its support
STATS = {
    "Normal": (ld.Normal(t(0.3), t(1.7)), scipy.stats.norm(0.3, 1.7), (-3.0, 0.1, 2.5)),
    "Laplace": (ld.Laplace(t(0.3), t(1.7)), scipy.stats.laplace(0.3, 1.7), (-3.0, 0.1, 2.5)),
    "Cauchy": (ld.Cauchy(t(0.3), t(1.7)), scipy.stats.cauchy(0.3, 1.7), (-3.0, 0.1, 2.5)),
    "Gumbel": (ld.Gumbel(t(0.3), t(1.7)), scipy.stats.gumbel_r(0.3, 1.7), (-3.0, 0.1, 2.5)),
    "Uniform": (ld.Uniform(t(-1.0), t(2.5)), scipy.stats.uniform(-1, 3.5), (-0.5, 0.1, 2.4)),
    "StudentT": (ld.StudentT(t(4.5), t(0.3), t(1.7)), scipy.stats.t(4.5, 0.3, 1.7), (-3.0, 0.1, 2.5)),
    "Exponential": (ld.Exponential(t(1.7)), scipy.stats.expon(scale=1 / 1.7), (0.2, 1.1, 7.0)),
    "Gamma": (ld.Gamma(t(2.3), t(1.7)), scipy.stats.gamma(2.3, scale=1 / 1.7), (0.2, 1.1, 7.0)),
    "Chi2": (ld.Chi2(t(2.3)), scipy.stats.chi2(2.3), (0.2, 1.1, 7.0)),
    "InverseGamma": (ld.InverseGamma(t(2.3), t(1.7)), scipy.stats.invgamma(2.3, scale=1.7), (0.2, 1.1, 7.0)),
    "FisherSnedecor": (ld.FisherSnedecor(t(2.3), t(5.1)), scipy.stats.f(2.3, 5.1), (0.2, 1.1, 7.0)),
    "HalfNormal": (ld.HalfNormal(t(1.7)), scipy.stats.halfnorm(scale=1.7), (0.2, 1.1, 7.0)),
    "HalfCauchy": (ld.HalfCauchy(t(1.7)), scipy.stats.halfcauchy(scale=1.7), (0.2, 1.1, 7.0)),
    "LogNormal": (ld.LogNormal(t(0.3), t(0.7)), scipy.stats.lognorm(0.7, scale=np.exp(0.3)), (0.2, 1.1, 7.0)),
    "Weibull": (ld.Weibull(t(1.7), t(2.3)), scipy.stats.weibull_min(2.3, scale=1.7), (0.2, 1.1, 3.0)),
    "Pareto": (ld.Pareto(t(0.7), t(3.3)), scipy.stats.pareto(3.3, scale=0.7), (0.8, 1.1, 7.0)),
    "Beta": (ld.Beta(t(2.3), t(1.7)), scipy.stats.beta(2.3, 1.7), (0.1, 0.5, 0.9)),
    "VonMises": (ld.VonMises(t(0.3), t(1.7)), scipy.stats.vonmises(1.7, 0.3), (-1.0, 0.1, 2.5)),
    "Bernoulli": (ld.Bernoulli(t(0.3)), scipy.stats.bernoulli(0.3), (0.0, 1.0)),
    "Geometric": (ld.Geometric(t(0.3)), scipy.stats.geom(0.3, -1), (0.0, 1.0, 6.0)),
    "Poisson": (ld.Poisson(t(2.3)), scipy.stats.poisson(2.3), (0.0, 1.0, 6.0)),
    "Binomial": (ld.Binomial(9, t(0.3)), scipy.stats.binom(9, 0.3), (0.0, 1.0, 6.0)),
    "NegativeBinomial": (ld.NegativeBinomial(t(4.0), t(0.3)), scipy.stats.nbinom(4, 0.7), (0.0, 1.0, 6.0)),
}


def distribution_case(name):
    """Densities and moments, and where lazuli has them probabilities, quantiles and entropies."""
    def check():
        ours, theirs, points = STATS[name]
        x = np.array(points)
        near(ours.log_prob(t(*points)), (theirs.logpmf if hasattr(theirs.dist, "pmf") else theirs.logpdf)(x), 1e-13, "log_prob")
        if np.isfinite(theirs.var()) and name != "VonMises":  # whose variance is circular
            near(ours.mean, [theirs.mean()], 1e-13, "mean")
            near(ours.variance, [theirs.var()], 1e-13, "variance")
        for method, call in (("cdf", lambda d: d.cdf(t(*points))), ("icdf", lambda d: d.icdf(t(0.1, 0.5, 0.8))), ("entropy", lambda d: d.entropy())):
            try:
                got = call(ours)
            except NotImplementedError:
                continue
            right = {"cdf": lambda: theirs.cdf(x), "icdf": lambda: theirs.ppf([0.1, 0.5, 0.8]), "entropy": lambda: [theirs.entropy()]}[method]()
            near(got, right, 1e-9 if method == "entropy" else 1e-12, method)
    return check


def of_vectors():
    mean, spread = np.array([0.3, -1.0]), np.array([[2.0, 0.6], [0.6, 1.1]])
    x = np.array([[0.1, 0.7], [2.0, -2.0]])
    ours = ld.MultivariateNormal(lz.tensor(mean), lz.tensor(spread))
    near(ours.log_prob(lz.tensor(x)), scipy.stats.multivariate_normal(mean, spread).logpdf(x), 1e-13, "MultivariateNormal")
    near(ours.entropy(), scipy.stats.multivariate_normal(mean, spread).entropy(), 1e-13, "its entropy")
    shares, weights = np.array([0.2, 0.5, 0.3]), np.array([1.5, 0.7, 3.0])
    near(ld.Dirichlet(lz.tensor(weights)).log_prob(lz.tensor(shares)), scipy.stats.dirichlet(weights).logpdf(shares), 1e-13, "Dirichlet")
    near(ld.Multinomial(6, lz.tensor(shares)).log_prob(t(1, 3, 2)), scipy.stats.multinomial(6, shares).logpmf([1, 3, 2]), 1e-13, "Multinomial")
    near(ld.Wishart(t(4.0)[0], lz.tensor(spread)).log_prob(lz.tensor(spread * 3)), scipy.stats.wishart(4, spread).logpdf(spread * 3), 1e-13, "Wishart")


def main():
    cases = {f"linalg: {name}": linalg_case(name) for name in LINALG}
    cases |= {f.__name__: f for f in (batches, least_squares, exact, transforms, of_vectors)}
    cases |= {f"distribution {name}": distribution_case(name) for name in STATS}
    return report(cases, "families", "SciPy, NumPy and mpmath have")


if __name__ == "__main__":
    sys.exit(main())
