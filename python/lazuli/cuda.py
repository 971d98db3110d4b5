"""What programs ask before they use a GPU: there is none."""

from lazuli import amp
from lazuli._C import UnimplementedError


def is_available():
    """False."""
    return False


def device_count():
    """0."""
    return 0


def is_initialized():
    """False."""
    return False


def _nothing(name):
    def call(*arguments, **named):
        """Does nothing, as in PyTorch where there is no GPU."""

    call.__name__ = name
    return call


empty_cache, ipc_collect, manual_seed, manual_seed_all, reset_peak_memory_stats = (_nothing(name) for name in (
    "empty_cache", "ipc_collect", "manual_seed", "manual_seed_all", "reset_peak_memory_stats"))


def current_device():
    """An error."""
    raise UnimplementedError("cuda: there is no GPU; PJRT_DEVICE says what runs tensors")


def synchronize(device=None):
    """An error."""
    current_device()


def is_bf16_supported(including_emulation=True):
    """False."""
    return False


def memory_allocated(device=None):
    """0."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated
