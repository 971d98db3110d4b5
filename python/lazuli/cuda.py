"""What programs ask before they use a GPU: there is none, and what would be on one is an error
where it is used."""

from lazuli._C import UnimplementedError
from lazuli._names import OLD_CONSTRUCTORS
from lazuli.amp import cuda as amp  # noqa: F401: a part of this module


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


empty_cache, ipc_collect, manual_seed, manual_seed_all, reset_peak_memory_stats = (
    _nothing(name) for name in ("empty_cache", "ipc_collect", "manual_seed", "manual_seed_all",
                                "reset_peak_memory_stats"))


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


# --- names that programs have in hand before they know whether there is a GPU


def _no_gpu(name):
    def call(*arguments, **named):
        """An error."""
        current_device()

    call.__name__ = name
    return call


(current_blas_handle, current_stream, default_stream, get_device_capability, get_device_name,
 get_device_properties, mem_get_info, set_device, set_stream,
 stream) = map(_no_gpu, ("current_blas_handle", "current_stream", "default_stream",
                         "get_device_capability", "get_device_name", "get_device_properties",
                         "mem_get_info", "set_device", "set_stream", "stream"))


class _OfGpu(type):
    """A class that has no instances: isinstance() is always false."""

    def __call__(cls, *arguments, **named):
        current_device()

    def __instancecheck__(cls, x):
        return False


def _of_gpu(name, **attributes):
    return _OfGpu(name, (), {"__module__": __name__, "__doc__": "Nothing is one: there is no GPU.",
                             **attributes})


Event, Stream, device = map(_of_gpu, ("Event", "Stream", "device"))
globals().update({name: _of_gpu(name) for name in OLD_CONSTRUCTORS})  # FloatTensor and others
