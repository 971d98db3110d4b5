"""Names by which programs choose kernels of attention. In Lazuli, the compiler chooses."""

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
    """Does nothing but check `backends`, an SDPBackend or a list of several: there is one
    implementation."""
    given = [backends] if isinstance(backends, SDPBackend) else backends
    if not isinstance(given, (list, tuple)) or not all(isinstance(b, SDPBackend) for b in given):
        raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend "
                             "instances")
    yield {}
