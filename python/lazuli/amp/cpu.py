"""The names of lazuli.amp for the CPU: PyTorch's older way to say the device."""

from lazuli import _C, amp
from lazuli.amp.grad_scaler import GradScaler as _GradScaler


class autocast(amp.autocast):  # noqa: N801
    """amp.autocast("cpu", ...)."""

    def __init__(self, enabled=True, dtype=_C.bfloat16, cache_enabled=True):
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(_GradScaler):
    """amp.GradScaler("cpu", ...)."""

    def __init__(self, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5,
                 growth_interval=2000, enabled=True):
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval,
                         enabled)
