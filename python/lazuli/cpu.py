"""What programs ask about the CPU, under torch.cpu's names."""

from lazuli import _C
from lazuli.amp import cpu as amp  # noqa: F401: a part of this module


def is_available():
    """True."""
    return True


def is_initialized():
    """True."""
    return True


def device_count():
    """1, as in PyTorch: CPU_NUM_DEVICES makes more for programs of several devices."""
    return 1


def current_device():
    """The name of the device."""
    return "cpu"


def synchronize(device=None):
    """Runs what is recorded and waits for it."""
    _C.sync(True)
