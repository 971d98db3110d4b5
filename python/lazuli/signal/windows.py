"""Windows [M], as torch.signal.windows has them: symmetric ones, or with sym=False periodic ones,
whose end would be their begin."""

import math

from lazuli import _C


def _window(function):
    """Of (M, steps, last): `steps` gives M numbers of f64 from a start by a step, `last` is where a
    window of this kind ends."""

    def window(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False,
               **named):  # noqa: N803
        dtype = _C.get_default_dtype() if dtype is None else _C.dtype_of(dtype)
        name = function.__name__
        if M < 0:
            raise _C.InvalidArgumentError(f"{name}: requires non-negative window length, got M={M}")
        if dtype not in (_C.float32, _C.float64):
            raise _C.InvalidArgumentError(
                f"{name}: expects float32 or float64 dtypes, got: {dtype!r}")
        if layout is not None and repr(layout) != "lazuli.strided":
            raise _C.InvalidArgumentError(
                f"{name}: is implemented for strided tensors only, got: {layout!r}")

        def steps(start, step):
            return _C.arange(M, _C.float64, device) * step + start

        steps.device = device
        last = M if not sym and M > 1 else M - 1  # where the end is
        if "center" in named and sym and named["center"] is not None:
            raise _C.InvalidArgumentError(f"{name}: center must be None for symmetric windows")
        made = (function(M, steps, last, **named) if M > 0
                else _C.zeros(0, _C.float64, device)).to(dtype)
        return made.requires_grad_() if requires_grad else made

    window.__name__, window.__doc__ = function.__name__, function.__doc__
    return window


def _positive(name, what, value):
    if value <= 0:
        raise _C.InvalidArgumentError(f"{name}: {what} must be positive, got: {value} instead.")


def _cosines(M, steps, last, a):  # noqa: N803
    if M <= 1:
        return _C.ones(M, _C.float64, steps.device)
    return sum((-1) ** i * weight * _C.cos(steps(0, 2 * math.pi * i / last))
               for i, weight in enumerate(a))


@_window
def exponential(M, steps, last, *, center=None, tau=1.0):  # noqa: N803
    """exp(-|n - center| / tau), around the middle unless there is a center, which only a periodic
    window may have."""
    _positive("exponential", "tau", tau)
    return _C.exp(-_C.abs(steps(-(last / 2 if center is None else center), 1.0)) / tau)


@_window
def cosine(M, steps, last):  # noqa: N803
    """sin(pi (n + 1/2) / N)."""
    step = math.pi / (last + 1)
    return _C.sin(steps(step / 2, step))


@_window
def gaussian(M, steps, last, *, std=1.0):  # noqa: N803
    """exp(-(n / std)^2 / 2) around the middle."""
    _positive("gaussian", "std", std)
    return _C.exp(-0.5 * _C.square(steps(-last / 2, 1.0) / std))


@_window
def kaiser(M, steps, last, *, beta=12.0):  # noqa: N803
    """i0(beta sqrt(1 - (2 n / N - 1)^2)) / i0(beta)."""
    if beta < 0:
        raise _C.InvalidArgumentError(f"kaiser: beta must be non-negative, got: {beta} instead.")
    if M <= 1:
        return _C.ones(M, _C.float64, steps.device)
    place = _C.square(steps(-1.0, 2.0 / last))
    return _C.i0(beta * _C.sqrt(_C.clamp(1 - place, 0.0))) / _C.i0(_C.full((), beta, _C.float64,
                                                                           steps.device))


@_window
def general_cosine(M, steps, last, *, a):  # noqa: N803
    """The sum of (-1)^i a[i] cos(2 pi i n / N)."""
    if not isinstance(a, (tuple, list)) or not a:
        raise (_C.WrongTypeError if not isinstance(a, (tuple, list)) else _C.InvalidArgumentError)(
            "general_cosine: coefficients must be a list of at least one number")
    return _cosines(M, steps, last, a)


@_window
def general_hamming(M, steps, last, *, alpha=0.54):  # noqa: N803
    """alpha - (1 - alpha) cos(2 pi n / N)."""
    return _cosines(M, steps, last, [alpha, 1 - alpha])


@_window
def hamming(M, steps, last):  # noqa: N803
    """general_hamming() of 0.54."""
    return _cosines(M, steps, last, [0.54, 0.46])


@_window
def hann(M, steps, last):  # noqa: N803
    """(1 - cos(2 pi n / N)) / 2."""
    return _cosines(M, steps, last, [0.5, 0.5])


@_window
def blackman(M, steps, last):  # noqa: N803
    """0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)."""
    return _cosines(M, steps, last, [0.42, 0.5, 0.08])


@_window
def bartlett(M, steps, last):  # noqa: N803
    """A triangle that begins with 0."""
    return 1 - _C.abs(steps(-1.0, 2.0 / last)) if M > 1 else _C.ones(M, _C.float64, steps.device)


@_window
def nuttall(M, steps, last):  # noqa: N803
    """Nuttall's four cosines, whose sides are smooth."""
    return _cosines(M, steps, last, [0.3635819, 0.4891775, 0.1365995, 0.0106411])
