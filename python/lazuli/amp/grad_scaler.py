"""Scales of losses, so that gradients of narrow floats do not vanish."""

from lazuli import _C
from lazuli._settings import warn_cuda
from lazuli.autograd import no_grad


class GradScaler:
    """Multiplies a loss so that gradients of narrow floats do not vanish, and leaves out steps
    whose gradients are not finite."""

    def __init__(self, device="cuda", init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5,
                 growth_interval=2000, enabled=True):
        if enabled and device == "cuda":
            warn_cuda("GradScaler")
        self._enabled = enabled and device != "cuda"
        self._scale, self._growth, self._backoff, self._interval = (init_scale, growth_factor,
                                                                    backoff_factor, growth_interval)
        self._good = 0
        self._found = {}  # by optimiser, whether a gradient was not finite

    def is_enabled(self):
        """Whether it does anything."""
        return self._enabled

    def get_scale(self):
        """The factor."""
        return self._scale if self._enabled else 1.0

    def scale(self, outputs):
        """A tensor, or a row of them, times the factor."""
        if not self._enabled:
            return outputs
        return (outputs * self._scale if isinstance(outputs, _C.Tensor)
                else type(outputs)(self.scale(x) for x in outputs))

    def unscale_(self, optimizer):
        """Divides the gradients by the factor; reads whether all are finite."""
        if not self._enabled:
            return
        if id(optimizer) in self._found:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update().")
        gradients = [p.grad for group in optimizer.param_groups
                     for p in group["params"] if p.grad is not None]
        with no_grad():
            for gradient in gradients:
                gradient.mul_(1 / self._scale)
        self._found[id(optimizer)] = not all(x.item()
                                             for x in [g.isfinite().all() for g in gradients])

    def step(self, optimizer, *arguments, **named):
        """optimizer.step() unless a gradient is not finite."""
        if not self._enabled:
            return optimizer.step(*arguments, **named)
        if id(optimizer) not in self._found:
            self.unscale_(optimizer)
        return None if self._found[id(optimizer)] else optimizer.step(*arguments, **named)

    def update(self, new_scale=None):
        """The factor of the next step: less after gradients that were not finite, more after many
        that were."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif any(self._found.values()):
            self._scale, self._good = self._scale * self._backoff, 0
        else:
            self._good += 1
            if self._good == self._interval:
                self._scale, self._good = self._scale * self._growth, 0
        self._found = {}

    def state_dict(self):
        """What load_state_dict() takes."""
        if not self._enabled:
            return {}
        return {"scale": self._scale, "growth_factor": self._growth,
                "backoff_factor": self._backoff, "growth_interval": self._interval,
                "_growth_tracker": self._good}

    def load_state_dict(self, state):
        """Goes on from a state_dict()."""
        if self._enabled:
            self._scale, self._growth, self._backoff = (state["scale"], state["growth_factor"],
                                                        state["backoff_factor"])
            self._interval, self._good = state["growth_interval"], state["_growth_tracker"]
