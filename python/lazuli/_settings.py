"""PyTorch's settings of a process, and their meaning here."""

import warnings

from lazuli import _C
from lazuli._C import get_num_threads
from lazuli._names import OLD_CONSTRUCTORS

_precision = "highest"
_deterministic = True
_warn_only = False


def set_num_threads(number):
    """Only checks its argument: LAZULI_NUM_THREADS sets the number of threads before the first
    program."""
    if not isinstance(number, int) or number < 1:
        raise _C.InvalidArgumentError(
            "set_num_threads: expects a positive integer, not "
            f"{number if isinstance(number, int) else type(number).__name__}")


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Has no effect on programs, which always give the same bits."""
    global _deterministic, _warn_only
    _deterministic, _warn_only = bool(mode), bool(warn_only)


def are_deterministic_algorithms_enabled():
    """The value set by use_deterministic_algorithms(); True at first."""
    return _deterministic


def is_deterministic_algorithms_warn_only_enabled():
    """What use_deterministic_algorithms() said of warn_only."""
    return _deterministic and _warn_only


_DEBUG_MODES = ("default", "warn", "error")


def set_deterministic_debug_mode(debug_mode):
    """use_deterministic_algorithms() by "default", "warn" or "error", or their numbers 0, 1, 2."""
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _DEBUG_MODES:
            raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, "
                               f"`error`, but got {debug_mode}")
        debug_mode = _DEBUG_MODES.index(debug_mode)
    if not 0 <= debug_mode <= 2:
        raise RuntimeError("invalid value of debug_mode, expected 0, 1, or 2, but got "
                           f"{debug_mode}")
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode():
    """The number of set_deterministic_debug_mode()."""
    return (1 if _warn_only else 2) if _deterministic else 0


_warn_always = False


def set_warn_always(b):
    """Has no effect: warnings are Python's, whose filters say how often they are shown."""
    global _warn_always
    _warn_always = bool(b)


def is_warn_always_enabled():
    """What set_warn_always() said."""
    return _warn_always


def set_float32_matmul_precision(precision):
    """Takes "highest", "high" or "medium", without effect: the precision is the highest;
    XLA_USE_BF16 computes in bfloat16."""
    global _precision
    if not isinstance(precision, str):
        raise TypeError(
            f"set_float32_matmul_precision: precision must be str, not {type(precision).__name__}")
    if precision not in ("highest", "high", "medium"):
        raise _C.InvalidArgumentError(
            f"set_float32_matmul_precision: must be highest, high or medium, is {precision!r}")
    _precision = precision


def get_float32_matmul_precision():
    """The value set by set_float32_matmul_precision()."""
    return _precision


def get_default_device():
    """The device of new tensors."""
    return _C.Device()


def set_default_device(device):
    """Sets the kind of device of new tensors, in all threads; None means that of PJRT_DEVICE."""
    name = str(getattr(device, "name", device)).split(":")[0]
    if device is not None:
        _C.set_device_type(name)


def set_default_tensor_type(kind):
    """set_default_dtype() by a class or its name, such as "torch.DoubleTensor"."""
    kind = OLD_CONSTRUCTORS.get(kind.split(".")[-1], kind) if isinstance(kind, str) else kind
    dtype = getattr(kind, "dtype", kind)
    if not isinstance(dtype, _C.DType):
        raise _C.WrongTypeError("set_default_tensor_type: takes a class such as DoubleTensor, or "
                                f"its name, not {type(kind).__name__}")
    _C.set_default_dtype(dtype)


def set_flush_denormal(mode):
    """Returns False: denormal numbers are not flushed."""
    return False


def warn_cuda(what):
    warnings.warn(f"{what}: there is no GPU, so it is off", stacklevel=3)


FUNCTIONS = [are_deterministic_algorithms_enabled, get_default_device,
             get_deterministic_debug_mode, get_float32_matmul_precision, get_num_threads,
             is_deterministic_algorithms_warn_only_enabled, is_warn_always_enabled,
             set_default_device, set_default_tensor_type, set_deterministic_debug_mode,
             set_float32_matmul_precision, set_flush_denormal, set_num_threads, set_warn_always,
             use_deterministic_algorithms]
