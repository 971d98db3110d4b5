"""Kernels of attention, which the compiler chooses here: the names that programs choose them by."""

import contextlib
import enum

__all__ = ["SDPBackend", "WARN_FOR_UNFUSED_KERNELS", "sdpa_kernel"]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(enum.Enum):
    """The implementations of scaled_dot_product_attention() that PyTorch has."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority=False):
    """Nothing but a check of the argument, a backend or a list of them: there is one
    implementation, and its values are those of all."""
    given = [backends] if isinstance(backends, SDPBackend) else backends
    if not isinstance(given, (list, tuple)) or not all(isinstance(b, SDPBackend) for b in given):
        raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend "
                             "instances")
    yield {}
