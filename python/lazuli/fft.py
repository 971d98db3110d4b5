"""Fourier transforms, as torch.fft has them."""

from lazuli._C.fft import *  # noqa: F403
