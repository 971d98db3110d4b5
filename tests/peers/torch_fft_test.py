#!/usr/bin/env python3
"""Fourier transforms are as torch, numpy and JAX have them: values, dtypes, gradients, errors, compiled graphs, and training with them.

    torch_fft_test.py FOLDER [COUNT]      FOLDER holds the package lazuli, as build/PRESET/python does

The calls of all functions with all dtypes, sizes, dims and norms are some 140,000: COUNT of them are drawn, or all are made if it is 0.
"""

import itertools
import os
import pathlib
import random
import sys
import warnings

import numpy as np
import torch
from cases import report

sys.path.insert(0, sys.argv[1])
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
os.environ.setdefault("LAZULI_RECOMPILE_WARNING", "0")
import hlo_oracle  # noqa: E402
import lazuli  # noqa: E402
import lazuli.torch  # noqa: E402

warnings.simplefilter("ignore")
COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 900
DTYPES = ["bool", "int32", "int64", "float32", "float64", "complex64", "complex128"]
ONE = "fft ifft rfft irfft hfft ihfft".split()
NORMS = [None, "backward", "ortho", "forward"]
SHAPES = [(1,), (2,), (7,), (8,), (3, 5), (4, 6), (0, 4), (2, 0), (2, 31), (3, 37), (2, 128), (2, 3, 4), (3, 1, 2, 5), (2, 2, 3, 2, 2)]


def values(shape, dtype, seed=0):
    rng = np.random.default_rng([seed, *shape])
    x = rng.normal(size=shape) * (3 if "int" in dtype else 1)
    return np.asarray(x + 1j * rng.normal(size=shape) if "complex" in dtype else x).astype(dtype)


def bound(dtype):
    return 1e-11 if str(dtype) in ("float64", "complex128") else 2e-5


def same(mine, theirs, what="", factor=1):
    """Raises unless both are alike; the errors of transforms grow with the largest elements."""
    mine, theirs = mine.detach().numpy(), theirs.detach().resolve_conj().resolve_neg().numpy()
    assert mine.dtype == theirs.dtype, f"{what}: {mine.dtype} beside {theirs.dtype}"
    assert mine.shape == theirs.shape, f"{what}: {mine.shape} beside {theirs.shape}"
    largest = max(1.0, float(np.abs(theirs).max())) if theirs.size else 1.0
    np.testing.assert_allclose(mine, theirs, rtol=0, atol=factor * bound(theirs.dtype) * largest, err_msg=what)


def outcome(function, name, x, *arguments):
    try:
        return function(x, *arguments), None
    except (RuntimeError, IndexError, TypeError, NotImplementedError) as error:
        return None, error


def agree(name, x, arguments):
    """One call in both; torch's MKL refuses batches without elements, which are results without elements."""
    what = f"{name} of {x.dtype}{list(x.shape)}, {arguments}"
    mine, refused = outcome(getattr(lazuli.fft, name), name, lazuli.tensor(x), *arguments)
    theirs, error = outcome(getattr(torch.fft, name), name, torch.tensor(x), *arguments)
    if error is not None and "MKL" in str(error):
        assert refused is None and 0 in mine.shape, f"{what}: {refused}"
        return
    assert (refused is None) == (error is None), f"{what}: {refused!r} beside {error!r}"
    if error is None:
        same(mine, theirs, what)
    elif not ("complex" in str(x.dtype) and name.startswith(("rfft", "ihfft"))):  # which has two mistakes where a dim is wrong, too
        assert isinstance(refused, IndexError) == isinstance(error, IndexError), f"{what}: {refused!r} beside {error!r}"


def calls():
    for name, dtype, shape in itertools.product(ONE, DTYPES, SHAPES):
        for n, dim, norm in itertools.product((None, 1, shape[-1] - 1, shape[-1] + 3, 0), (-1, 0, len(shape) - 2, len(shape)), NORMS):
            yield name, (n, dim, norm), dtype, shape
        for s, dim, norm in itertools.product((None, (3,), (2, 5), (-1, 4)), ((-2, -1), (0,), (1, 0), (0, -1), (0, 0)), NORMS):
            yield name + "2", (s, dim, norm), dtype, shape
        for s, dim, norm in itertools.product((None, (3,), (4, 2, 3), ()), (None, (), (0, 2, 1), (-1,), (3, 0, 1, 2)), NORMS):
            yield name + "n", (s, dim, norm), dtype, shape


def all_calls():
    every = list(calls())
    drawn = every if COUNT == 0 else random.Random(3).sample(every, COUNT)
    for name, arguments, dtype, shape in drawn:
        agree(name, values(shape, dtype), arguments)
    print(f"{len(drawn)} of {len(every)} calls")


def numpy_judges():
    """Long lines, whose errors torch would share, beside numpy in f64."""
    for n in (4096, 5000, 2 * 3 * 5 * 7 * 11 * 13, 10007, 65536, 100003):
        for dtype, limit in (("complex64", 1e-6), ("complex128", 1e-14)):
            x = values((2, n), dtype)
            real = x.real.copy()
            wide = real.astype(np.float64)
            spectrum = np.fft.rfft(wide)
            half = lazuli.tensor(spectrum.astype(dtype))
            for mine, exact in ((lazuli.fft.fft(lazuli.tensor(x)), np.fft.fft(x.astype(np.complex128))),
                                (lazuli.fft.ifft(lazuli.tensor(x)), np.fft.ifft(x.astype(np.complex128))),
                                (lazuli.fft.rfft(lazuli.tensor(real)), spectrum), (lazuli.fft.irfft(half, n), wide)):
                error = np.linalg.norm(mine.numpy() - exact) / np.linalg.norm(exact)
                assert error < limit, f"{n} {dtype}: {error}"


def shifts():
    for shape, dim in itertools.product([(1,), (6,), (7,), (3, 4), (5, 4, 3)], (None, 0, -1, (0,), (0, -1))):
        x = values(shape, "float32")
        for name in ("fftshift", "ifftshift"):
            same(getattr(lazuli.fft, name)(lazuli.tensor(x), dim), getattr(torch.fft, name)(torch.tensor(x), dim), f"{name} {shape} {dim}")
    for n, d, dtype in itertools.product((0, 1, 2, 7, 8, 1001), (1.0, 0.5, 3), ("float16", "float32", "float64")):
        for name in ("fftfreq", "rfftfreq"):
            mine = getattr(lazuli.fft, name)(n, d, dtype=getattr(lazuli, dtype)).numpy()
            theirs = getattr(torch.fft, name)(n, d, dtype=getattr(torch, dtype)).numpy()
            assert mine.dtype == theirs.dtype, name
            np.testing.assert_allclose(mine, theirs, rtol=2e-3 if dtype == "float16" else 1e-7, err_msg=f"{name}({n}, {d}, {dtype})")


def loss(t, y, z):
    """A real number of both parts of each element."""
    parts = t.stack([y.real, y.imag], -1) if y.is_complex() else y
    weight = t.linspace(0.5, 2, parts.numel(), dtype=parts.dtype).reshape(parts.shape)
    return (parts * weight).sin().sum() + (abs(z) ** 2).sum()


def derivatives(t, function, x, dtype):
    """First gradients, and those of what is made of them."""
    x = t.tensor(x, dtype=getattr(t, dtype), requires_grad=True)
    (first,) = t.autograd.grad(loss(t, function(t, x), x), x, create_graph=True)
    (second,) = t.autograd.grad((abs(first * first)).sum(), x)
    return first, second


GRADIENTS = {
    **{f"{name}{n}": (name, lambda t, x, name=name, n=n: getattr(t.fft, name)(x, n, 0, "ortho"))
       for name in ONE for n in (None, 3, 4, 9)},
    **{f"{name} of {dim}": (name, lambda t, x, name=name, dim=dim: getattr(t.fft, name)(x, None, dim, "forward"))
       for name in ("fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn") for dim in ((1, 0), (0, 1), (1,))},
    **{f"{name} cut": (name, lambda t, x, name=name: getattr(t.fft, name)(x, (3, 9))) for name in ("fft2", "ifft2", "rfft2", "irfft2")},
    "shift": ("fft", lambda t, x: t.fft.fftshift(x) * t.fft.ifftshift(x, 1)),
    "stft": ("stft", lambda t, x: t.stft(x, 4, 2, window=t.hann_window(4, dtype=t.float64), return_complex=True)),
    "stft of many slices": ("stft", lambda t, x: t.stft(x.flatten(), 35, 1, return_complex=True)),
    "istft": ("istft", lambda t, x: t.istft(x[:3] + 0j, 4, 2, center=False)),
}


def gradients():
    for what, (name, function) in GRADIENTS.items():
        for dtype in ("float64", "complex128"):
            if dtype == "complex128" and name in ("rfft", "ihfft", "rfftn", "ihfftn", "rfft2", "stft"):
                continue
            x = values((6, 7), dtype, seed=5)
            for mine, theirs, order in zip(derivatives(lazuli, function, x, dtype), derivatives(torch, function, x, dtype), (1, 2)):
                same(mine, theirs, f"{what} of {dtype}, gradient {order}", factor=10)


MISTAKES = """
F.fft(x, n=0) | F.fft(x, n=-1) | F.fft(x, dim=5) | F.fft(x, norm='foo') | F.fft(t.tensor(1.)) | F.fft(t.ones(3, 0)) | F.fft(x.half())
F.fft(x.bfloat16()) | F.rfft(z) | F.rfft(x, n=0) | F.irfft(z, n=0) | F.irfft(z[:, :1]) | F.irfft(z[:, :0]) | F.ihfft(z) | F.ihfft(x, n=0)
F.fftn(x, s=(2, 2, 2)) | F.fftn(x, s=(2,), dim=(0, 1)) | F.fftn(x, dim=(0, 0)) | F.fftn(x, s=(0, 2)) | F.fftn(x, s=(-2, 2))
F.rfftn(x, dim=()) | F.rfftn(x, s=()) | F.irfftn(z, dim=()) | F.irfftn(z, s=(3, 0)) | F.hfftn(z, dim=()) | F.ihfftn(x, dim=())
F.ihfftn(z) | F.rfftn(z) | F.hfft2(z, s=(3,)) | F.fft2(x, s=(3,)) | F.fft2(x[0]) | F.rfftn(t.tensor(1.))
F.fftn(x, dim=(0, 3)) | F.fftfreq(-1) | F.fftfreq(5, dtype=t.int64) | F.rfftfreq(-4) | F.fftshift(x, dim=3) | F.fftshift(t.tensor(1.))
t.stft(x, 4) | t.stft(z, 4, onesided=True) | t.stft(x.int(), 4, return_complex=True) | t.stft(x.half(), 4, return_complex=True)
t.stft(t.tensor(1.), 4, return_complex=True) | t.stft(t.ones(2, 3, 4), 4, return_complex=True) | t.stft(x, 0, return_complex=True)
t.stft(x, 4, hop_length=0, return_complex=True) | t.stft(x, 4, hop_length=-1, return_complex=True) | t.stft(x, 1, return_complex=True)
t.stft(x, 4, win_length=5, return_complex=True) | t.stft(x, 4, win_length=0, return_complex=True) | t.stft(x, 9, return_complex=True)
t.stft(x, 4, window=t.ones(3), return_complex=True) | t.stft(x, 4, window=t.ones(2, 2), return_complex=True)
t.stft(x, 5, center=False, return_complex=True) | t.stft(x, 4, pad_mode='foo', return_complex=True)
t.stft(x, 4, align_to_window=True, return_complex=True) | t.istft(x, 4) | t.istft(t.ones(3, 4, 2), 4) | t.istft(z[:0], 4)
t.istft(z, 4, return_complex=True) | t.istft(z, 3, onesided=True) | t.istft(z, 4, onesided=False) | t.istft(z, 4, hop_length=0)
t.istft(z, 4, hop_length=5) | t.istft(z, 4, win_length=5) | t.istft(z, 4, win_length=0) | t.istft(z, 4, window=t.ones(3))
t.istft(z, 4, window=t.ones(4) + 0j) | t.istft(z, 4, window=t.zeros(4)).sum().item() | t.istft(t.ones(1, 2, 3, 4) + 0j, 4)
t.istft(z[:, :0], 4) | t.istft(z, 4, length=0) | t.istft(t.ones(3, 1) + 0j, 4)
t.istft(z, 4, hop_length=4, window=t.hann_window(4), center=False).sum().item()
"""


def mistakes():
    for text in (part.strip() for line in MISTAKES.strip().split("\n") for part in line.split("|")):
        raised = []
        for t in (torch, lazuli):
            x = t.ones(3, 4)
            try:
                eval(text, {"t": t, "F": t.fft, "x": x, "z": x + 0j})
                raised.append(None)
            except Exception as error:
                raised.append(error)
        theirs, mine = raised
        assert theirs is not None and mine is not None, f"{text}: {mine!r} beside {theirs!r}"
        kinds = [next(k for k in (IndexError, TypeError, RuntimeError) if isinstance(e, k)) for e in (theirs, mine)]
        # lazuli's errors of types are torch's RuntimeErrors, too.
        assert isinstance(mine, kinds[0]), f"{text}: {mine!r} beside {theirs!r}"


def stfts():
    windows = {None: lambda t, n, d: None, "hann": lambda t, n, d: t.hann_window(n, dtype=getattr(t, d)),
               "complex": lambda t, n, d: t.ones(n, dtype=getattr(t, d)) * (1 + 0.5j)}
    options = itertools.product(("float32", "float64", "complex64"), ((40,), (2, 37)), (8, 9), (None, 3, 8), (None, 5), windows, (True, False),
                                ("reflect", "constant", "replicate", "circular"), (False, True), (None, False), (True, False))
    drawn = random.Random(1).sample(list(options), 120 if COUNT else 2000)
    inverted = 0
    for dtype, shape, n_fft, hop, win, window, center, mode, normalized, onesided, complex_result in drawn:
        x = values(shape, dtype)
        own = "float64" if dtype == "float64" else "float32"
        made = []
        for t in (lazuli, torch):
            w = windows[window](t, win or n_fft, own)
            y = t.stft(t.tensor(x), n_fft, hop, win, w, center, mode, normalized, onesided, complex_result)
            method = t.tensor(x).stft(n_fft, hop, win, w, center, mode, normalized, onesided, complex_result)
            assert method.shape == y.shape
            made.append((y, w))
        what = f"stft of {(dtype, shape, n_fft, hop, win, window, center, mode, normalized, onesided, complex_result)}"
        (mine, mine_window), (theirs, their_window) = made
        same(mine, theirs, what)
        if complex_result and (hop or 2) <= (win or n_fft) and window != "complex":
            inverted += back(mine, mine_window, theirs, their_window, n_fft, hop, win, center, normalized, dtype, what)
    for align in (True, False):  # frames for the window's places
        x = values((30,), "float64")
        mine, theirs = (t.stft(t.tensor(x), 12, 3, 7, t.hann_window(7, dtype=t.float64), center=False, return_complex=True, align_to_window=align)
                        for t in (lazuli, torch))
        same(mine, theirs, f"align_to_window={align}")
    print(f"{len(drawn)} stft, {inverted} istft")


def back(mine, mine_window, theirs, their_window, n_fft, hop, win, center, normalized, dtype, what):
    """istft() of both, where torch has one: for each length; how many were compared."""
    compared = 0
    is_complex = "complex" in dtype
    for length in (None, 20, 60):
        arguments = dict(n_fft=n_fft, hop_length=hop, win_length=win, center=center, normalized=normalized, length=length,
                         return_complex=is_complex, onesided=False if is_complex else None)
        results = []
        for spectrum, window in ((theirs, their_window), (mine, mine_window)):
            try:
                y = spectrum.istft(window=window, **arguments)
                y.sum().item() if not is_complex else y.real.sum().item()  # a run finds windows that do not meet
                results.append(y)
            except RuntimeError as error:
                results.append(error)
        failed = [isinstance(r, Exception) for r in results]
        assert failed[0] == failed[1], f"i{what}, {length}: {results[1]!r} beside {results[0]!r}"
        if not failed[0]:
            same(results[1], results[0], f"i{what}, {length}", factor=50)
            compared += 1
    return compared


def compiled():
    """Graphs of torch, which the backend runs in lazuli."""
    x = torch.randn(3, 8, dtype=torch.float64)
    z = torch.randn(3, 8, 5, dtype=torch.complex128)
    functions = {
        "fft": (lambda v: torch.fft.fft(v).abs(), x), "ifft ortho": (lambda v: torch.fft.ifft(v * 1j, norm="ortho").imag, x),
        "rfft2": (lambda v: torch.fft.rfft2(v, norm="forward").abs(), x), "irfft": (lambda v: torch.fft.irfft(v, n=9) * 2, z),
        "irfftn": (lambda v: torch.fft.irfftn(v, s=(3, 4, 7), norm="ortho") + 1, z), "hfft": (lambda v: torch.fft.hfft(v, 6) * 2, z),
        "ihfft": (lambda v: torch.fft.ihfft(v).abs(), x),
        "stft": (lambda v: torch.stft(v, 4, window=torch.hann_window(4, dtype=torch.float64), return_complex=True).abs(), x),
    }
    for name, (function, argument) in functions.items():
        torch._dynamo.reset()
        expected = function(argument)
        got = torch.compile(function, backend="lazuli")(argument)
        torch.testing.assert_close(got, expected, msg=lambda text, name=name: f"{name}: {text}")
    a, b = (x.clone().requires_grad_() for _ in range(2))
    function = lambda v: (torch.fft.irfft(torch.fft.rfft(v) * torch.fft.rfft(v).conj()) ** 2).sum()
    function(a).backward()
    torch._dynamo.reset()
    torch.compile(function, backend="lazuli")(b).backward()
    torch.testing.assert_close(b.grad, a.grad)


def jax_runs_them():
    """The HLO is XLA's: it computes the same from it."""
    oracle = hlo_oracle.Oracle()
    x, z = values((3, 6), "float64"), values((4, 3, 5), "complex128")
    for function, argument in ((lambda v: lazuli.fft.rfft2(v, norm="ortho"), x), (lambda v: lazuli.fft.fft(v, dim=0), z),
                               (lambda v: lazuli.fft.irfftn(v, s=(4, 3, 7), norm="forward"), z), (lambda v: lazuli.fft.hfft(v, 5), z),
                               (lambda v: lazuli.stft(v, 4, return_complex=True), x)):
        module = lazuli.hlo.HloModule.trace([lazuli.tensor(argument)], lambda v, function=function: [function(v)])
        theirs, *_ = oracle.run(str(module), [argument])  # others count what checks find
        np.testing.assert_allclose(function(lazuli.tensor(argument)).numpy(), theirs, rtol=1e-11, atol=1e-11)
    oracle.close()


def spectral_network(t, seed=2):
    """Weights, and the loss of two layers whose weights multiply spectra, between which elements of a 1x1 convolution are added."""
    rng = np.random.default_rng(seed)
    make = lambda *shape: t.tensor(rng.normal(size=shape) * 0.3, requires_grad=True)
    complex_weights = [t.tensor((rng.normal(size=(3, 3, 8, 5)) + 1j * rng.normal(size=(3, 3, 8, 5))) * 0.1, requires_grad=True) for _ in "12"]
    mixing = [make(3, 3) for _ in "12"]
    last = make(3)

    def forward(x, y):
        for w, m in zip(complex_weights, mixing):
            spectrum = t.fft.rfft2(x)
            mixed = t.einsum("bixy,ioxy->boxy", spectrum, w)
            x = t.tanh(t.fft.irfft2(mixed, s=(8, 8)) + t.einsum("bixy,io->boxy", x, m))
        windows = x.unfold(2, 4, 4).unfold(3, 4, 4).mean((-1, -2))  # a mean of each quarter
        return ((t.einsum("bixy,i->bxy", windows, last) - y) ** 2).mean()

    return [*complex_weights, *mixing, last], forward


def training():
    """Twenty steps of the same network in both."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(4, 3, 8, 8)), rng.normal(size=(4, 2, 2))
    histories = []
    for t in (lazuli, torch):
        weights, forward = spectral_network(t)
        optimizer = t.optim.SGD(weights, lr=0.2, momentum=0.9)
        losses = []
        for _ in range(20):
            optimizer.zero_grad()
            value = forward(t.tensor(x), t.tensor(y))
            value.backward()
            optimizer.step()
            losses.append(value.item())
        histories.append((losses, weights))
    (mine, my_weights), (theirs, their_weights) = histories
    assert theirs[-1] < 0.5 * theirs[0], theirs
    np.testing.assert_allclose(mine, theirs, rtol=1e-9)
    for a, b in zip(my_weights, their_weights):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=0, atol=1e-9)


if __name__ == "__main__":  # the oracle's child imports this file
    sys.exit(report({f.__name__: f for f in (all_calls, numpy_judges, shifts, gradients, mistakes, stfts, compiled, jax_runs_them, training)},
                    "groups of Fourier transforms"))
