"""Muon (Jordan, 2024): momentum whose directions are made orthogonal. For matrices."""

import math

from lazuli import _C
from lazuli._C import Tensor
from lazuli.autograd import enable_grad, no_grad
from lazuli.optim.optimizer import number, Optimizer, shown


def _orthogonal(x, coefficients, steps, eps):
    """Nearly U V^T of the singular value decomposition U S V^T, by a polynomial that is applied several times."""
    if steps >= 100:
        raise ValueError("Muon: ns_steps is below 100, which would take long")
    if len(coefficients) != 3:
        raise ValueError("Muon: ns_coefficients are three numbers")
    a, b, c = coefficients
    high = x.shape[0] > x.shape[1]
    y = x.to(_C.bfloat16)
    y = y.t() if high else y
    y = y / y.norm().clamp(min=eps)
    for _ in range(steps):
        gram = y @ y.t()
        y = _C.addmm(y, _C.addmm(gram, gram, gram, beta=b, alpha=c), y, beta=a)
    return y.t() if high else y


class Muon(Optimizer):
    """Muon (Jordan, 2024), of matrices only; the other parameters go to another optimiser."""

    def __init__(self, params, lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True,
                 ns_coefficients=(3.4445, -4.7750, 2.0315), eps=1e-7, ns_steps=5, adjust_lr_fn=None):
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Muon: a tensor as lr has one element")
        for name, value in {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}.items():
            if not number(value) >= 0:
                raise ValueError(f"Muon: {name} is at least 0, not {value}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Muon: adjust_lr_fn is None, 'original' or 'match_rms_adamw', not {shown(adjust_lr_fn)}")
        super().__init__(params, dict(lr=lr, weight_decay=weight_decay, momentum=momentum, nesterov=nesterov,
                                      ns_coefficients=ns_coefficients, eps=eps, ns_steps=ns_steps, adjust_lr_fn=adjust_lr_fn))
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(f"Muon: parameters are matrices, one of shape {tuple(p.shape)} is none")

    def step(self, closure=None):
        """Records one update of every parameter that has a gradient, after the closure, whose loss it returns."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    if p.is_complex():
                        raise RuntimeError("Muon: takes no complex parameters")
                    self._move(p, group)
        return loss

    def _move(self, p, group):
        lr, momentum = number(group["lr"]), group["momentum"]
        kept = self.state[p]
        if "momentum_buffer" not in kept:
            kept["momentum_buffer"] = _C.zeros_like(p.grad)
        mean = kept["momentum_buffer"].lerp_(p.grad, 1 - momentum)
        move = p.grad.lerp(mean, momentum) if group["nesterov"] else mean
        move = _orthogonal(move, group["ns_coefficients"], group["ns_steps"], group["eps"])
        rows, columns = p.shape
        if group["adjust_lr_fn"] == "match_rms_adamw":
            ratio = 0.2 * math.sqrt(max(rows, columns))
        else:
            ratio = math.sqrt(max(1, rows / columns))
        p.mul_(1 - lr * group["weight_decay"])
        p.sub_(move * (lr * ratio))
