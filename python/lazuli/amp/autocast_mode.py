"""Functions that choose the dtypes that they compute in.

Which function takes which dtype is a word in its row (docs/functions.md): products and
convolutions take the narrow dtype, losses, Fourier transforms and decompositions float32, cat() and
its kin the widest dtype of their arguments. The choice holds for all devices of the thread.
"""

import functools
import threading
import warnings

from lazuli import _C
from lazuli._settings import warn_cuda

_NARROW = (_C.bfloat16, _C.float16)
_OTHERS = ("cuda", "xpu", "mps", "hpu", "ipu", "mtia", "maia", "privateuseone")  # not there


class _Defaults(threading.local):
    """What autocast() without a dtype narrows to, per thread, and how deep contexts are nested."""

    def __init__(self):
        self.dtypes = {"cuda": _C.float16}
        self.caches, self.nesting = True, 0


_defaults = _Defaults()


def _type_of(device_type):
    if not isinstance(device_type, str):
        raise ValueError("Expected `device_type` of type `str`, got: "
                         f"`{type(device_type).__name__}`")
    if device_type in _OTHERS:
        return device_type
    try:
        return _C.Device(device_type).type
    except _C.Error as error:
        raise RuntimeError(f"autocast: {device_type!r} is not a type of devices") from error


def is_autocast_available(device_type):
    """Whether autocast(device_type) has an effect: for all devices of lazuli."""
    return _type_of(device_type) not in _OTHERS


def get_autocast_dtype(device_type):
    """The dtype that functions narrow to, or would: bfloat16 unless set_autocast_dtype() or an
    autocast() around says otherwise."""
    kind = _type_of(device_type)
    current = _C._autocast_dtype() if kind not in _OTHERS else None
    return current or _defaults.dtypes.get(kind, _C.bfloat16)


def set_autocast_dtype(device_type, dtype):
    """Sets the dtype of autocast() contexts of this thread that name none."""
    kind = _type_of(device_type)
    _defaults.dtypes[kind] = _C.dtype_of(dtype)
    if kind not in _OTHERS and _C._autocast_dtype() is not None:
        _C._set_autocast_dtype(_defaults.dtypes[kind])


def is_autocast_enabled(device_type="cuda"):
    """Whether functions choose dtypes; False for a device that is not there."""
    return _type_of(device_type) not in _OTHERS and _C._autocast_dtype() is not None


def set_autocast_enabled(device_type, enabled):
    """Switches the choice on or off for this thread."""
    if _type_of(device_type) not in _OTHERS:
        _C._set_autocast_dtype(get_autocast_dtype(device_type) if enabled else None)


def is_autocast_cpu_enabled():
    """is_autocast_enabled("cpu")."""
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled):
    """set_autocast_enabled("cpu", enabled)."""
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype():
    """get_autocast_dtype("cpu")."""
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype):
    """set_autocast_dtype("cpu", dtype)."""
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype():
    """get_autocast_dtype("cuda")."""
    return get_autocast_dtype("cuda")


def is_autocast_cache_enabled():
    """The value that set_autocast_cache_enabled() set; True at first."""
    return _defaults.caches


def set_autocast_cache_enabled(enabled):
    """Has no effect: a graph converts a weight once, whoever asks for it."""
    _defaults.caches = bool(enabled)


def clear_autocast_cache():
    """Has no effect: there is no cache."""


def autocast_increment_nesting():
    """Counts a context that opens; the number of open ones."""
    _defaults.nesting += 1
    return _defaults.nesting


def autocast_decrement_nesting():
    """Counts a context that closes; the number of open ones."""
    _defaults.nesting -= 1
    return _defaults.nesting


class autocast:  # noqa: N801
    """A context, or a decorator, in which functions of this thread choose dtypes.

    dtype is bfloat16 or float16; another one switches the context off with a warning, and so does
    a device type that is not there, such as "cuda". With enabled=False functions do not choose,
    whatever is around the context.
    """

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        self.device = _type_of(device_type)
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else _C.dtype_of(dtype)
        if enabled and self.device in _OTHERS:
            warn_cuda("autocast")
            enabled = False
        elif enabled and self.fast_dtype not in _NARROW:
            warnings.warn(f"autocast: only to bfloat16 or float16, not {self.fast_dtype.name}, so "
                          "it is off", stacklevel=2)
            enabled = False
        self._enabled, self._saved = enabled, []

    def __enter__(self):
        self._saved.append(_C._autocast_dtype())
        if self.device not in _OTHERS:
            _C._set_autocast_dtype(self.fast_dtype if self._enabled else None)
        return self

    def __exit__(self, *error):
        _C._set_autocast_dtype(self._saved.pop())
        return False

    def __call__(self, function):
        @functools.wraps(function)
        def call(*arguments, **named):
            with self:
                return function(*arguments, **named)

        return call


def _cast(value, dtype):
    if isinstance(value, _C.Tensor):
        return value.to(dtype) if value.is_floating_point() and value.dtype != _C.float64 else value
    if isinstance(value, dict):
        return {_cast(key, dtype): _cast(item, dtype) for key, item in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_cast(item, dtype) for item in value)
    return value


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """A decorator for forward() of an autograd.Function: with cast_inputs, arguments that are
    floats are converted to that dtype if autocast is on, and it is off inside."""
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def call(ctx, *arguments, **named):
        on = is_autocast_enabled(device_type)
        ctx._dtype, ctx._fwd_used_autocast = get_autocast_dtype(device_type), on
        if cast_inputs is None or not on:
            ctx._fwd_used_autocast = on and cast_inputs is None
            return fwd(ctx, *arguments, **named)
        ctx._fwd_used_autocast = False
        with autocast(device_type, enabled=False):
            return fwd(ctx, *_cast(arguments, cast_inputs), **_cast(named, cast_inputs))

    return call


def custom_bwd(bwd=None, *, device_type):
    """A decorator for backward() of an autograd.Function: it runs under the autocast that
    custom_fwd() saw."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def call(ctx, *arguments, **named):
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(ctx, *arguments, **named)

    return call
