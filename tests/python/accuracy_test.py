"""Errors of reductions grow with the logarithm of their length, in every layout, and both devices make the same ones.

LAZULI_ACCURACY_ELEMENTS=1000000000 goes on to arrays of so many elements: a quarter of an hour and 20 GB.
"""

import os

import numpy as np
import pytest

import lazuli as lz

F = lz.nn.functional
MOST = int(os.environ.get("LAZULI_ACCURACY_ELEMENTS", 10**6))
LENGTHS = [n for n in (1, 100, 3 * 1024 + 1, 10**5, 10**6, 10**7, 10**8, 10**9) if n <= MOST]
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
    yield "norm", lambda t: t.norm(dim=dims), norm, share * norm
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
@pytest.mark.parametrize("shape, dims", [((3100, 10), (0,)), ((10, 3100), (1,)), ((300, 100), (0, 1))])
def test_reductions_of_what_is_read_otherwise(shape, dims, read):
    compare(made("positive", shape), dims, READ[read])


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


# --- floats of 16 bits

LABELS = np.arange(70000) % 3
CLASSES = np.random.default_rng(2).normal(0, 4, (70000, 3))
LARGE = np.random.default_rng(3).uniform(250, 500, 70000)  # whose squares pass the range of f16
PICTURE = LARGE[:900].reshape(1, 1, 30, 30)
SIGNED = LARGE * np.where(LABELS == 1, -1, 1)


def labels(t, n=len(LABELS)):
    return lz.from_numpy(LABELS[:n]).to(t.device)


def class_weights(t):
    return lz.tensor([1.0, 0.5, 2.0], dtype=t.dtype)


def clipped(x):
    x.grad = x * 1.0
    norm = lz.nn.utils.clip_grad_norm_([x], 30.0)
    return lz.cat([x.grad, norm.reshape(1)])


def batch_norm_and_moments(x):
    mean, var = lz.zeros(3, dtype=lz.float64), lz.zeros(3, dtype=lz.float64)
    y = F.batch_norm(x.reshape(-1, 3), mean, var, training=True, momentum=1.0)
    return y * 1.0 if x.dtype == lz.float64 else y


# Each: of a tensor of these values.
NARROW = {
    "mean of many": (lambda x: x.mean(), np.ones(70000)),
    "mean of large": (lambda x: x.mean(), LARGE),
    "mean of columns": (lambda x: x.reshape(-1, 7).mean(0), LARGE),
    "var": (lambda x: x.reshape(-1, 7)[:1000].var(0) / 100, LARGE / 4),
    "std": (lambda x: x.std(), SIGNED),
    "norm": (lambda x: x.norm(), LARGE[:1000]),
    "logsumexp": (lambda x: lz.logsumexp(x), np.zeros(70000)),
    "cumsum": (lambda x: lz.cumsum(x, 0), np.full(5000, 2.0)),
    "prod": (lambda x: x.prod(), np.r_[np.full(100, 4.0), np.full(100, 0.25)]),
    "amax of equals": (lambda x: x.amax(), np.ones(70000)),
    "softmax": (lambda x: lz.softmax(x, 0), LARGE[:1000] / 64),
    "log_softmax": (lambda x: lz.log_softmax(x, 0), LARGE[:1000] / 64),
    "layer_norm": (lambda x: F.layer_norm(x, [70000]), SIGNED),
    "rms_norm": (lambda x: F.rms_norm(x, [70000]), LARGE),
    "group_norm": (lambda x: F.group_norm(x.reshape(1, 7, -1), 7), SIGNED),
    "batch_norm": (batch_norm_and_moments, SIGNED[:69999]),
    "avg_pool2d": (lambda x: lz.avg_pool2d(x, 20), PICTURE),
    "avg_pool2d with padding": (lambda x: lz.avg_pool2d(x, 20, 10, 10, count_include_pad=False), PICTURE),
    "adaptive_avg_pool2d": (lambda x: lz.adaptive_avg_pool2d(x, 1), PICTURE),
    "adaptive_avg_pool2d, uneven": (lambda x: lz.adaptive_avg_pool2d(x, 4), PICTURE),
    "mse_loss": (lambda x: F.mse_loss(x, x * 0 - 0.25 * x) / 16, LARGE / 4),
    "l1_loss": (lambda x: F.l1_loss(x, lz.zeros_like(x)), LARGE),
    "smooth_l1_loss": (lambda x: F.smooth_l1_loss(x, lz.zeros_like(x), 0.1), LARGE),
    "huber_loss": (lambda x: F.huber_loss(x, lz.zeros_like(x), delta=0.1), LARGE),
    "kl_div": (lambda x: F.kl_div(-x, x * 0 + 0.25), LARGE),
    "bce_with_logits": (lambda x: F.binary_cross_entropy_with_logits(x, lz.zeros_like(x)), LARGE),
    "cross_entropy": (lambda x: F.cross_entropy(x, labels(x)), CLASSES),
    "cross_entropy by weight": (lambda x: F.cross_entropy(x, labels(x), class_weights(x)), CLASSES),
    "cross_entropy, smooth": (lambda x: F.cross_entropy(x, labels(x), label_smoothing=0.1), CLASSES),
    "cross_entropy, ignoring": (lambda x: F.cross_entropy(x, labels(x), ignore_index=1), CLASSES),
    "nll_loss": (lambda x: F.nll_loss(x, labels(x)), CLASSES),
    "clip_grad_norm_": (clipped, LARGE[:5000]),
}


FORMATS = [(lz.float16, 11, name) for name in NARROW] + [(lz.bfloat16, 8, name) for name in list(NARROW)[:: 1 if MOST > 10**6 else 4]]


@pytest.mark.parametrize("dtype, bits, name", FORMATS)
def test_narrow_floats_are_computed_with_wider_ones(dtype, bits, name):
    compute, values = NARROW[name]
    eps = 2.0 ** (1 - bits)
    narrow = lz.tensor(values).to(dtype)
    exact_in = narrow.to(lz.float64)
    found = []
    for x in (narrow, exact_in):
        x.requires_grad_()
        y = compute(x)
        y.backward(lz.linspace(1, 2, y.numel(), dtype=lz.float64).reshape(y.shape).to(dtype).to(y.dtype))
        found.append((y.detach().to(lz.float64).numpy(), x.grad.to(lz.float64).numpy()))
    for what, got, exact in zip(("value", "gradient"), *found, strict=True):
        scale = np.abs(exact) + np.abs(exact).max() * (what == "gradient") + 1e-7
        assert_near(what, got, exact, 3 * eps * scale)


def test_narrow_floats_within_their_range_stay_there():
    """What frameworks give: nothing in between is of 16 bits."""
    many, large = lz.ones(70000, dtype=lz.float16), lz.full([300], 300.0, dtype=lz.float16)
    assert large.mean().item() == 300 and many.mean().item() == 1 and large.norm().item() == 5196
    assert lz.softmax(many, 0)[0].item() == np.float16(1 / 70000)
    assert lz.log_softmax(many, 0)[0].item() == -np.float16(np.log(70000))
    assert lz.logsumexp(many - 1).item() == np.float16(np.log(70000))
    assert F.mse_loss(many * 200, many * 0).item() == 40000
    assert lz.adaptive_avg_pool2d(large.reshape(1, 1, 15, 20), 1).item() == 300
    assert F.rms_norm(large, [300]).numpy().tolist() == [1] * 300
    weight = lz.zeros(4, dtype=lz.float16).requires_grad_()
    (weight * 400).sum().backward()
    assert lz.nn.utils.clip_grad_norm_([weight], 8.0).item() == 800
    assert weight.grad.tolist() == [4] * 4


def test_means_of_large_windows():
    x = made("positive", (1, 2, 1000, 1000))
    t = lz.from_numpy(x).requires_grad_()
    y = lz.adaptive_avg_pool2d(t, (1, 2))
    exact = total(x[..., :500], (2, 3)), total(x[..., 500:], (2, 3))
    assert_near("value", y.detach().numpy(), np.concatenate(exact, 3) / 500000, allowed(500000))
    y.backward(lz.tensor([[[[1.0, 2.0]], [[3.0, 4.0]]]]))
    assert [t.grad[0, 0, 7, 499].item(), t.grad[0, 1, 999, 500].item()] == [np.float32(1 / 500000), np.float32(4 / 500000)]


@pytest.mark.parametrize("kind", ["positive", "mixed", "constant"])
@pytest.mark.parametrize("n", LENGTHS)
def test_inner_products(n, kind):
    x, y = made(kind, (2, n)), made("constant", (2, n))
    products = x.astype(np.float64) * y
    got = lz.einsum("bi,bi->b", lz.from_numpy(x), lz.from_numpy(y)).numpy()
    assert_near("batch", got, products.sum(1), allowed(n) * np.abs(products).sum(1))
    got = (lz.from_numpy(x[0]) @ lz.from_numpy(y[0])).numpy()
    assert_near("vectors", got, products[0].sum(), allowed(n) * np.abs(products[0]).sum())
