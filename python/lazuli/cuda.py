"""What programs ask before they use a GPU: there is none."""

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


empty_cache, manual_seed, manual_seed_all = (_nothing(name) for name in ("empty_cache", "manual_seed", "manual_seed_all"))


def current_device():
    """An error."""
    raise UnimplementedError("cuda: there is no GPU; PJRT_DEVICE says what runs tensors")
