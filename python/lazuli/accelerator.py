"""What programs ask before they move tensors to a GPU: there is none.

PJRT_DEVICE says what runs tensors.
"""

from lazuli import _C


def is_available():
    """False."""
    return False


def current_accelerator(check_available=False):
    """None."""
    return None


def device_count():
    """0."""
    return 0


def synchronize(device=None):
    """Runs what is recorded and waits for it."""
    _C.sync(True)


def current_device_index():
    """An error."""
    raise _C.UnimplementedError("accelerator: there is none; PJRT_DEVICE says what runs tensors")


def set_device_index(device):
    """An error."""
    current_device_index()
