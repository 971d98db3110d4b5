"""Muon (Jordan, 2024): momentum whose directions are made orthogonal. For matrices."""

from lazuli import _C
from lazuli._C import Tensor
from lazuli.optim.algorithms import _InCpp
from lazuli.optim.optimizer import number, shown


class Muon(_InCpp):
    """Muon (Jordan, 2024), for matrices only; other parameters need another optimiser."""

    @staticmethod
    def _record(groups, state, stepper):
        for group in groups:
            if group["ns_steps"] >= 100:
                raise ValueError("Muon: ns_steps is below 100, which would take long")
            if len(group["ns_coefficients"]) != 3:
                raise ValueError("Muon: ns_coefficients are three numbers")
            if any(p.grad is not None and p.is_complex() for p in group["params"]):
                raise RuntimeError("Muon: takes no complex parameters")
        _C.optim._step_Muon(groups, state, stepper)

    def __init__(self, params, lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True,
                 ns_coefficients=(3.4445, -4.7750, 2.0315), eps=1e-7, ns_steps=5,
                 adjust_lr_fn=None):
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Muon: a tensor as lr has one element")
        for name, value in {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}.items():
            if not number(value) >= 0:
                raise ValueError(f"Muon: {name} is at least 0, not {value}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError("Muon: adjust_lr_fn is None, 'original' or 'match_rms_adamw', not "
                             f"{shown(adjust_lr_fn)}")
        super().__init__(params, dict(lr=lr, weight_decay=weight_decay, momentum=momentum,
                                      nesterov=nesterov, ns_coefficients=ns_coefficients, eps=eps,
                                      ns_steps=ns_steps, adjust_lr_fn=adjust_lr_fn))
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(
                        f"Muon: parameters are matrices; one has shape {tuple(p.shape)}")
