"""Fourier transforms: values next to NumPy's, gradients, and what they refuse."""

import numpy as np
import pytest

import lazuli as lz

RNG = np.random.default_rng(4)
NORMS = (None, "backward", "ortho", "forward")


def close(mine, exact, bound=1e-12):
    assert mine.shape == exact.shape
    np.testing.assert_allclose(mine.numpy(), exact, rtol=0, atol=bound * max(1, np.abs(exact).max()))


@pytest.mark.parametrize("n", (1, 2, 5, 8, 31, 37, 128, 129, 360, 1009, 4096))
def test_every_length(n):
    x, z = RNG.normal(size=(2, n)), RNG.normal(size=(2, n)) + 1j * RNG.normal(size=(2, n))
    half = np.fft.rfft(x)
    for _ in range(2):  # the second time runs what the first one compiled
        close(lz.fft.fft(lz.tensor(z)), np.fft.fft(z))
        close(lz.fft.ifft(lz.tensor(z)), np.fft.ifft(z))
        close(lz.fft.rfft(lz.tensor(x)), half)
        close(lz.fft.irfft(lz.tensor(half), n), x)
        close(lz.fft.fft(lz.tensor(z.astype(np.complex64)), dim=0), np.fft.fft(z, axis=0), 1e-6)
        close(lz.fft.rfft(lz.tensor(x.astype(np.float32))), half, 2e-6)


@pytest.mark.parametrize("norm", NORMS)
def test_several_dims(norm):
    x = RNG.normal(size=(3, 4, 5, 2))
    for axes in ((1, 2), (2, 0), (0, 1, 2, 3), (3,)):
        close(lz.fft.fftn(lz.tensor(x), dim=axes, norm=norm), np.fft.fftn(x, axes=axes, norm=norm))
        half = np.fft.rfftn(x, axes=axes, norm=norm)
        close(lz.fft.rfftn(lz.tensor(x), dim=axes, norm=norm), half)
        sizes = [x.shape[a] for a in axes]
        close(lz.fft.irfftn(lz.tensor(half), sizes, axes, norm), x)
    close(lz.fft.ifft2(lz.tensor(x), (2, 7), (0, 2), norm), np.fft.ifft2(x, (2, 7), (0, 2), norm))
    close(lz.fft.hfft(lz.tensor(x), 7, 1, norm), np.fft.hfft(x, 7, 1, norm))


def test_signatures_and_dtypes():
    x = lz.arange(8)
    assert lz.fft.fft(x).dtype == lz.complex64 and lz.fft.rfft(x > 3).dtype == lz.complex64
    assert lz.fft.hfft(lz.ones(3, dtype=lz.complex128)).dtype == lz.float64
    out = lz.empty(8, dtype=lz.complex64)
    assert lz.fft.fft(input=x, n=8, dim=-1, norm="ortho", out=out) is out
    close(out, np.fft.fft(np.arange(8), norm="ortho"), 1e-6)
    assert lz.fft.rfft2(lz.ones(2, 0, 4, 6)).shape == (2, 0, 4, 4) and lz.fft.irfft(lz.ones(0, 3)).shape == (0, 4)


def test_energy_has_the_gradient_of_parseval():
    x = lz.tensor(RNG.normal(size=(4, 7)), requires_grad=True)
    (abs(lz.fft.rfft2(x, norm="ortho")) ** 2).sum().backward()
    weights = np.array([1, 2, 2, 2])
    transform = np.fft.rfft2(x.detach().numpy(), norm="ortho")
    np.testing.assert_allclose(((abs(transform) ** 2) * weights).sum(), (x.detach().numpy() ** 2).sum())
    y = lz.tensor(x.detach().numpy(), requires_grad=True)
    (abs(lz.fft.fft2(y, norm="ortho")) ** 2).sum().backward()
    np.testing.assert_allclose(y.grad.numpy(), 2 * y.detach().numpy(), atol=1e-12)
    assert lz.autograd.gradcheck(lambda v: lz.fft.rfft2(v).real + lz.fft.rfft2(v).imag, (x.detach().requires_grad_(),))


def test_frames_add_up_to_the_signal():
    x = RNG.normal(size=(2, 60))
    window = lz.hann_window(16, dtype=lz.float64)
    spectra = lz.tensor(x).stft(16, 4, window=window, return_complex=True)
    first = x[:, 4 * 5 - 8:4 * 5 + 8] * window.numpy()
    close(spectra[:, :, 5], np.fft.rfft(first))
    close(spectra.istft(16, 4, window=window, length=60), x)
    with pytest.raises(RuntimeError, match="add up to less than 1e-11"):
        spectra.istft(16, 16, window=window, center=False).sum().item()


@pytest.mark.parametrize("call, error, message", [
    (lambda: lz.fft.fft(lz.ones(3), 0), RuntimeError, r"invalid number of data points \(0\)"),
    (lambda: lz.fft.fft(lz.ones(3), dim=1), IndexError, "dim 1 is out of range"),
    (lambda: lz.fft.fft(lz.ones(3), norm="own"), RuntimeError, 'norm "own" is not'),
    (lambda: lz.fft.fft(lz.ones(3, dtype=lz.float16)), RuntimeError, "does not transform f16"),
    (lambda: lz.fft.rfft(lz.ones(3) + 0j), RuntimeError, "expects a real input"),
    (lambda: lz.fft.fft2(lz.ones(3, 3), dim=()), RuntimeError, "dim must not be empty"),
    (lambda: lz.fft.fftfreq(4, dtype=lz.int32), RuntimeError, "floating point dtype"),
    (lambda: lz.fft.fftshift(lz.tensor(1.0)), RuntimeError, "no dims to shift"),
    (lambda: lz.stft(lz.ones(8), 4, hop_length=0, return_complex=True), RuntimeError, "hop_length > 0"),
    (lambda: lz.istft(lz.ones(3, 4), 4), RuntimeError, "requires complex numbers"),
])
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
