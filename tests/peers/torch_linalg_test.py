#!/usr/bin/env python3
"""Linear algebra, two libraries and XLA: what PyTorch's operator database (torch_opinfo_test.py) does not ask.

    torch_linalg_test.py FOLDER      FOLDER holds the package lazuli, as build/PRESET/python does

Gradients of functions that read one triangle, as they are without a function around them; the texts of errors that a run finds; names
of results; models that train for 20 steps with equal losses; and the programs, which jaxlib runs as they are.
"""

import pathlib
import re
import sys
import warnings

import numpy as np
import torch
from cases import report

sys.path.insert(0, sys.argv[1])
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import hlo_oracle  # noqa: E402
import lazuli as lz  # noqa: E402

warnings.simplefilter("ignore")
RNG = np.random.default_rng(0)
ORACLE = hlo_oracle.Oracle()
DTYPES = ("float32", "float64", "complex64", "complex128")


def array(*dims, dtype="float64"):
    x = RNG.normal(size=dims)
    return (x + 1j * RNG.normal(size=dims) if dtype.startswith("complex") else x).astype(dtype)


def positive(*dims, dtype="float64"):
    x = array(*dims, dtype=dtype)
    return (x @ np.conj(np.swapaxes(x, -1, -2)) + 2 * np.eye(dims[-1])).astype(dtype)


def close(ours, theirs, tolerance=1e-4):
    ours = ours.detach().numpy() if isinstance(ours, lz.Tensor) else ours
    theirs = theirs.numpy(force=True) if isinstance(theirs, torch.Tensor) else theirs
    assert ours.dtype == theirs.dtype, f"{ours.dtype} instead of {theirs.dtype}"
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


# --- gradients of functions of the elements as they are, not of a Hermitian matrix made of them
TRIANGLES = {
    "cholesky": lambda t, x: t.linalg.cholesky(x),
    "cholesky upper": lambda t, x: t.linalg.cholesky(x, upper=True),
    "cholesky_ex": lambda t, x: t.linalg.cholesky_ex(x)[0],
    "eigvalsh": lambda t, x: t.linalg.eigvalsh(x),
    "eigvalsh upper": lambda t, x: t.linalg.eigvalsh(x, UPLO="U"),
    "eigh": lambda t, x: t.linalg.eigh(x)[1].abs(),
    "eigh and values": lambda t, x: t.linalg.eigh(x)[1].abs().sum(-1) * t.linalg.eigh(x)[0],
    "pinv": lambda t, x: t.linalg.pinv(x, hermitian=True),
    "solve_triangular": lambda t, x: t.linalg.solve_triangular(x, x, upper=True),
    "lu_solve": lambda t, x: t.linalg.lu_solve(*t.linalg.lu_factor(x), x[..., :2], adjoint=True),
    "lstsq": lambda t, x: t.linalg.lstsq(x[..., :2], x, driver="gels")[1],
    "slogdet": lambda t, x: t.linalg.slogdet(x)[0] * t.linalg.slogdet(x)[1],
    "matrix_norm": lambda t, x: t.linalg.matrix_norm(x, -2),
}


def gradient_case(name, dtype, dims):
    def check():
        values, start = positive(*dims, dtype=dtype), None
        found = []
        for t in (lz, torch):
            x = t.tensor(values).requires_grad_()
            y = TRIANGLES[name](t, x)
            if start is None:
                start = np.random.default_rng(1).normal(size=tuple(y.shape)).astype(str(y.dtype).split(".")[-1])
            g, = t.autograd.grad(y, x, t.tensor(start), create_graph=True)
            h, = t.autograd.grad((g * g).real.sum() if g.dtype.is_complex else (g * g).sum(), x)
            found.append((y, g, h))
        for ours, theirs in zip(*found, strict=True):
            close(ours, theirs, 2e-2 if dtype in ("float32", "complex64") else 1e-6)
    return check


# --- errors that a run finds: the whole text, but for the line
SINGULAR = np.array([[1.0, 1.0], [1.0, 1.0]])
ERRORS = {
    "inv": lambda t, x: t.linalg.inv(x),
    "inverse": lambda t, x: t.inverse(x),
    "inv_ex": lambda t, x: t.linalg.inv_ex(x, check_errors=True)[0],
    "solve": lambda t, x: t.linalg.solve(x, x),
    "solve_ex": lambda t, x: t.linalg.solve_ex(x, x, check_errors=True)[0],
    "tensorinv": lambda t, x: t.linalg.tensorinv(x[0] if x.ndim > 2 else x, 1),
    "tensorsolve": lambda t, x: t.linalg.tensorsolve(x[0] if x.ndim > 2 else x, x[0, 0] if x.ndim > 2 else x[0]),
    "matrix_power": lambda t, x: t.linalg.matrix_power(x, -2),
    "cholesky": lambda t, x: t.linalg.cholesky(-x),
    "old cholesky": lambda t, x: t.cholesky(-x),
    "cholesky_ex": lambda t, x: t.linalg.cholesky_ex(x - 1, check_errors=True)[0],
    "cholesky_inverse": lambda t, x: t.cholesky_inverse(x - 1),
    "lu_factor": lambda t, x: t.linalg.lu_factor(x)[0],
    "lu_factor_ex": lambda t, x: t.linalg.lu_factor_ex(x, check_errors=True)[0],
    "svd": lambda t, x: t.linalg.svd(x / 0)[1],
    "pinv": lambda t, x: t.linalg.pinv(x / 0),
    "eig": lambda t, x: t.linalg.eig(x / 0)[0],
}


def text_of(t, call, x):
    try:
        call(t, t.tensor(x)).tolist()
    except RuntimeError as error:
        if t is lz:
            assert isinstance(error, lz.linalg.LinAlgError), type(error)
            assert error.place.startswith("torch_linalg_test.py:"), error.place
        return re.sub(r" \(torch_linalg_test\.py:\d+\)$", "", str(error))
    return "no error"


def error_case(name, batch):
    def check():
        x = np.stack([np.eye(2) * 2, SINGULAR]) if batch else SINGULAR
        ours, theirs = (text_of(t, ERRORS[name], x) for t in (lz, torch))
        assert ours == theirs, f"\n  {ours}\n  {theirs}"
    return check


# --- names of results
NAMED = {
    "linalg.cholesky_ex": 1, "linalg.inv_ex": 1, "linalg.slogdet": 1, "linalg.lu": 1, "linalg.lu_factor": 1, "linalg.lu_factor_ex": 1,
    "linalg.qr": 1, "linalg.eigh": 1, "linalg.eig": 1, "linalg.svd": 1, "linalg.ldl_factor": 1, "linalg.ldl_factor_ex": 1,
    "linalg.solve_ex": 2, "linalg.lstsq": 2, "slogdet": 1, "qr": 1, "svd": 1, "geqrf": 1, "triangular_solve": 2,
}


def names_case(name):
    def check():
        fields = []
        for t in (lz, torch):
            function = t
            for part in name.split("."):
                function = getattr(function, part)
            x = t.tensor(positive(3, 3))
            result = function(*[x] * NAMED[name])
            fields.append([n for n in re.findall(r"^(\w+)=", str(result), re.MULTILINE)])
        assert fields[0] == fields[1], fields
    return check


# --- models: (parameters, loss) of a library
def gaussian_process(t):
    """The likelihood of observations under a Gaussian process, by its kernel's length, scale and noise (Rasmussen and Williams, 2006)."""
    x = np.linspace(-2, 2, 15)
    y, squares = t.tensor(np.sin(3 * x)[:, None]), t.tensor((x[:, None] - x) ** 2)
    parameters = [t.tensor(v, dtype=t.float64, requires_grad=True) for v in (0.2, -0.3, -1.0)]

    def loss():
        length, scale, noise = (p.exp() for p in parameters)
        root = t.linalg.cholesky(scale * t.exp(-squares / (2 * length ** 2)) + noise * t.eye(len(x), dtype=t.float64))
        return t.linalg.solve_triangular(root, y, upper=False).pow(2).sum() / 2 + root.diagonal().log().sum()

    return parameters, loss


def normalising_flow(t):
    """The likelihood of points that linear maps and tanh bring from a normal distribution: by slogdet and derivatives."""
    rng = np.random.default_rng(2)
    points = t.tensor(rng.normal(size=(20, 4)) @ rng.normal(size=(4, 4)))
    matrices = [t.tensor(np.eye(4) + rng.normal(size=(4, 4)) * 0.2, requires_grad=True) for _ in range(3)]
    shifts = [t.tensor(rng.normal(size=4) * 0.1, requires_grad=True) for _ in range(3)]

    def loss():
        x, volume = points, 0
        for matrix, shift in zip(matrices, shifts, strict=True):
            x = x @ matrix + shift
            curved = x + 0.5 * t.tanh(x)
            volume = volume + t.linalg.slogdet(matrix)[1] + (1 + 0.5 / t.cosh(x) ** 2).log().sum(-1)
            x = curved
        return (x.pow(2).sum(-1) / 2 - volume).mean()

    return [*matrices, *shifts], loss


def kalman_filter(t):
    """The likelihood of observations of a linear system, step by step, by its matrices and noises (Kalman, 1960)."""
    rng = np.random.default_rng(3)
    seen = t.tensor(np.cumsum(rng.normal(size=(8, 2)), 0))
    moves, sees = (t.tensor(np.eye(n, 3) + rng.normal(size=(n, 3)) * 0.1, requires_grad=True) for n in (3, 2))
    noises = [t.tensor(rng.normal(size=n) * 0.1, requires_grad=True) for n in (3, 2)]

    def loss():
        state, spread = t.zeros(3, dtype=t.float64), t.eye(3, dtype=t.float64)
        total = 0
        for step in seen:
            state, spread = moves @ state, moves @ spread @ moves.T + t.diag(noises[0].exp())
            miss, wide = step - sees @ state, sees @ spread @ sees.T + t.diag(noises[1].exp())
            gain = t.linalg.solve(wide, sees @ spread).T
            total = total + t.linalg.slogdet(wide)[1] + miss @ t.linalg.inv(wide) @ miss
            state, spread = state + gain @ miss, spread - gain @ sees @ spread
        return total / 2

    return [moves, sees, *noises], loss


def training_case(model):
    def check():
        losses = []
        for t in (lz, torch):
            parameters, loss = model(t)
            optimizer = t.optim.Adam(parameters, 0.05)
            losses.append([])
            for _ in range(20):
                optimizer.zero_grad()
                value = loss()
                value.backward()
                optimizer.step()
                losses[-1].append(float(value))
        assert losses[1][-1] < losses[1][0] - 1, losses[1]
        np.testing.assert_allclose(*losses, rtol=1e-8)
    return check


# --- programs on jaxlib
def programs():
    square, tall, wide = positive(2, 3, 3), array(2, 4, 2), array(2, 3, 5)
    for dtype in DTYPES:
        x, y, z = (v.astype(dtype) for v in (square, tall, wide))
        yield f"cholesky {dtype}", lz.linalg.cholesky, (x,)
        yield f"inv {dtype}", lz.linalg.inv, (x,)
        yield f"solve {dtype}", lambda a, b: lz.linalg.solve(a, b), (x, z)
        yield f"solve_triangular {dtype}", lambda a, b: lz.linalg.solve_triangular(a.mH, b, upper=True, left=False), (x, x)
        yield f"slogdet {dtype}", lambda a: lz.linalg.slogdet(a)[1], (x,)
        yield f"lu {dtype}", lambda a: lz.linalg.lu(a)[0], (y,)
        yield f"qr {dtype}", lambda a: lz.linalg.qr(a)[0], (y,)
        yield f"complete qr {dtype}", lambda a: lz.linalg.qr(a, "complete")[0], (y,)
        yield f"eigh {dtype}", lambda a: lz.linalg.eigh(a)[0], (x,)
        yield f"eig {dtype}", lambda a: lz.linalg.eigvals(a).abs().sort()[0], (x,)
        yield f"svd {dtype}", lambda a: lz.linalg.svd(a)[1], (z,)
        yield f"svdvals {dtype}", lz.linalg.svdvals, (z,)
        yield f"matrix_exp {dtype}", lz.linalg.matrix_exp, (x,)
        yield f"pinv {dtype}", lz.linalg.pinv, (z,)
        yield f"det {dtype}", lz.linalg.det, (x,)
        yield f"lu_solve {dtype}", lambda a, b: lz.linalg.lu_solve(*lz.linalg.lu_factor(a), b, adjoint=True), (x, z)
        yield f"lstsq {dtype}", lambda a: lz.linalg.lstsq(a, a[..., :1])[0], (y,)
        yield f"householder_product {dtype}", lambda a: lz.linalg.householder_product(*lz.geqrf(a)), (y,)
        yield f"cholesky_inverse {dtype}", lambda a: lz.cholesky_inverse(lz.linalg.cholesky(a)), (x,)
        yield f"gradient of the singular values {dtype}", lambda a: gradient_of(lambda b: lz.linalg.svdvals(b).pow(2).sum(), a), (z,)
        yield f"gradient of slogdet {dtype}", lambda a: gradient_of(lambda b: lz.linalg.slogdet(b)[1].sum(), a), (x,)


def gradient_of(function, x):
    x = x.detach().requires_grad_()
    return lz.autograd.grad(function(x), x)[0]


def program_case(function, operands):
    def check():
        tensors = [lz.tensor(x) for x in operands]
        module = lz.hlo.HloModule.trace(tensors, lambda *xs: [function(*xs)])
        expected = function(*tensors)
        got = ORACLE.run(str(module), list(operands))[0]
        assert got.dtype == expected.numpy().dtype, got.dtype
        np.testing.assert_allclose(got, expected.numpy(), rtol=1e-3, atol=1e-3)
    return check


def main():
    cases = {f"gradient of {n}, {d} {dims}": gradient_case(n, d, dims) for n in TRIANGLES for d in DTYPES for dims in ((3, 3), (2, 4, 4))}
    cases |= {f"error of {n}{' in a batch' if batch else ''}": error_case(n, batch) for n in ERRORS for batch in (False, True)}
    cases |= {f"names of {n}": names_case(n) for n in NAMED}
    cases |= {f"training of {model.__name__}": training_case(model) for model in (gaussian_process, normalising_flow, kalman_filter)}
    cases |= {f"program {n}": program_case(function, operands) for n, function, operands in programs()}
    return report(cases, "cases")


if __name__ == "__main__":
    sys.exit(main())
