"""The names of lazuli.amp for a GPU, which is not there: PyTorch's older way to say the device."""

from lazuli import _C, amp
from lazuli.amp.grad_scaler import GradScaler as _GradScaler


class autocast(amp.autocast):  # noqa: N801
    """amp.autocast("cuda", ...)."""

    def __init__(self, enabled=True, dtype=_C.float16, cache_enabled=True):
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(_GradScaler):
    """amp.GradScaler("cuda", ...)."""

    def __init__(self, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5,
                 growth_interval=2000, enabled=True):
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval,
                         enabled)


def custom_fwd(fwd=None, *, cast_inputs=None):
    """amp.custom_fwd(..., device_type="cuda")."""
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd):
    """amp.custom_bwd(..., device_type="cuda")."""
    return amp.custom_bwd(bwd, device_type="cuda")
