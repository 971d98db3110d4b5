"""Errors of reductions grow with the logarithm of their length, in every layout, and both devices make the same ones.

LAZULI_ACCURACY_ELEMENTS=1000000000 goes on to arrays of so many elements: a quarter of an hour and 20 GB.
"""

import os

import numpy as np
import pytest

import lazuli as lz

F = lz.nn.functional
MOST = int(os.environ.get("LAZULI_ACCURACY_ELEMENTS", 10**6))
LENGTHS = [n for n in (1, 3, 100, 1000, 3 * 1024 + 1, 10**5, 10**6, 10**7, 10**8, 10**9) if n <= MOST]
ALSO_INTERPRETED = 10**5
EPS = float(np.finfo(np.float32).eps)

# What is reduced, n elements for each result: shape and dims.
LAYOUTS = {
    "all": lambda n: ((n,), (0,)),
    "rows": lambda n: ((3, n), (1,)),
    "many rows": lambda n: ((50, n), (1,)),
    "columns": lambda n: ((n, 3), (0,)),
    "many columns": lambda n: ((n, 50), (0,)),
    "middle": lambda n: ((2, n, 3), (1,)),
    "outer and inner": lambda n: ((-(-n // 100), 2, min(n, 100)), (0, 2)),
    "outer two": lambda n: ((-(-n // 100), min(n, 100), 2), (0, 1)),
}
# Written alike for NumPy and lazuli.
READ = {"transposed": lambda x: x.transpose(1, 0), "every second": lambda x: x[::2, 1:], "computed": lambda x: x + x}


def made(kind, shape):
    """f32: of one sign, of both, all the same, or far from 0 beside what they differ by."""
    if kind == "constant":
        return np.full(shape, 0.7, np.float32)
    x = np.random.default_rng(1).random(shape, dtype=np.float32)
    x += {"positive": 0, "mixed": -0.5, "far": 1000}[kind]
    return x


def allowed(n):
    """Relative to the sum of sizes: a few roundings in a block of a reduction, and one for each doubling beyond it."""
    return 2 * EPS * (np.log2(n) + 4)


def total(x, dims, of=lambda part: part):
    """The sum of `of` in f64, a million elements at a time: its own error is below 1e-9."""
    along = max(dims, key=lambda d: x.shape[d])
    pieces = np.array_split(x, min(x.shape[along], x.size // 2**20 + 1), along)
    return sum(np.sum(of(piece.astype(np.float64)), dims, keepdims=True) for piece in pieces)


def reductions(x, dims):
    """Of each: its name, it, its exact values, and the error that it may have."""
    n = int(np.prod([x.shape[d] for d in dims]))
    share = allowed(n)
    sums, size = total(x, dims), total(x, dims, np.abs)
    yield "sum", lambda t: t.sum(dims), sums, share * size
    yield "mean", lambda t: t.mean(dims), sums / n, share * size / n
    norm = total(x, dims, np.square) ** 0.5
    yield "norm", lambda t: t.norm(dims), norm, share * norm
    high = x.max()
    lse = np.log(total(x, dims, lambda part: np.exp(part - high))) + high
    yield "logsumexp", lambda t: lz.logsumexp(t, dims), lse, share + 2 * EPS * np.abs(lse)
    if n == 1:
        return
    var = total(x, dims, lambda part: (part - sums / n) ** 2) / (n - 1)
    error = share * var + (share * size / n) ** 2  # of the squares, and of the mean
    yield "var", lambda t: t.var(dims), var, error
    yield "std", lambda t: t.std(dims), var**0.5, error**0.5 if x.min() == x.max() else error / var**0.5


def compare(array, dims, read=lambda x: x):
    """Reductions of what is read of the array: near the exact values, and with the same bits on both devices."""
    found = list(reductions(read(array), dims))
    on_cpu = [compute(read(lz.from_numpy(array))) for _, compute, _, _ in found]
    for (name, _, exact, error), result in zip(found, on_cpu, strict=True):
        assert_near(name, result.numpy().reshape(exact.shape), exact, error)
    if array.size <= ALSO_INTERPRETED:
        interpreted = [compute(read(lz.from_numpy(array).to("interpreter"))) for _, compute, _, _ in found]
        for (name, *_), a, b in zip(found, on_cpu, interpreted, strict=True):
            assert a.numpy().tobytes() == b.numpy().tobytes(), f"{name}: devices differ"


def assert_near(name, got, exact, error):
    times = np.max(np.abs(got - exact) / np.maximum(error, 1e-300))
    assert times <= 1, f"{name}: {times:.1f} times the error that is allowed"


def cases(layouts):
    for length in LENGTHS:
        for layout in layouts:
            shape, dims = LAYOUTS[layout](length)
            if np.prod(shape, dtype=np.int64) <= MOST:
                yield pytest.param(shape, dims, id=f"{layout}-{length}")


KINDS = pytest.mark.parametrize("kind", ["positive", "mixed", "constant", "far"])


@KINDS
@pytest.mark.parametrize("shape, dims", list(cases(LAYOUTS)))
def test_reductions(shape, dims, kind):
    compare(made(kind, shape), dims)


@pytest.mark.parametrize("read", READ)
@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1)])
def test_reductions_of_what_is_read_otherwise(dims, read):
    compare(made("positive", (3100, 10)), dims, READ[read])
    compare(made("positive", (10, 3100)), dims, READ[read])


@KINDS
@pytest.mark.parametrize("shape, dims", list(cases(["all", "rows", "columns", "many columns", "middle"])))
def test_cumulative_sums(shape, dims, kind):
    x, dim = made(kind, shape), dims[0]
    got = lz.cumsum(lz.from_numpy(x), dim).numpy()
    if x.size <= ALSO_INTERPRETED:
        assert lz.cumsum(lz.from_numpy(x).to("interpreter"), dim).numpy().tobytes() == got.tobytes()
    before = size_before = 0.0  # of the pieces that are done
    for begin in range(0, shape[dim], 2**20):
        piece = [slice(None)] * x.ndim
        piece[dim] = slice(begin, begin + 2**20)
        part = x[tuple(piece)].astype(np.float64)
        exact, size = before + np.cumsum(part, dim), size_before + np.cumsum(np.abs(part), dim)
        numbers = np.arange(begin + 1, begin + 1 + part.shape[dim]).reshape([-1 if d == dim else 1 for d in range(x.ndim)])
        assert_near(f"from {begin}", got[tuple(piece)], exact, allowed(numbers) * size)
        before, size_before = np.take(exact, [-1], dim), np.take(size, [-1], dim)
