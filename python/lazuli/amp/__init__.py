"""Mixed precision, as torch.amp has it: functions that choose narrow floats, and scales of losses.

    with lz.autocast("cpu"):
        loss = lz.nn.functional.cross_entropy(model(x), y)
    loss.backward()
"""

from lazuli.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from lazuli.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
