"""The optimisers whose step is one call of C++.

Their arithmetic, options and states are PyTorch's.
"""

from lazuli import _C
from lazuli._C import Tensor
from lazuli.autograd import enable_grad
from lazuli.optim.optimizer import Optimizer, check_lr, number, shown


# Options that are at least 0, with the names that messages give them.
_AT_LEAST_0 = {name: name for name in ("weight_decay", "momentum", "momentum_decay", "lr_decay",
                                       "initial_accumulator_value")} | {"eps": "epsilon"}


def _options(arguments):
    """The options among the local variables of a constructor, in its order; ValueError for an
    option out of range."""
    options = {name: value for name, value in arguments.items()
               if name not in ("self", "params", "__class__")}
    check_lr(options["lr"])
    for name, value in options.items():
        if name in _AT_LEAST_0:
            _check_at_least_0(_AT_LEAST_0[name], value)
    if "betas" in options:
        _check_betas(options["betas"])
    if options.get("fused") and options["differentiable"]:
        raise RuntimeError("fused and differentiable exclude each other")
    if options.get("fused") and options["foreach"]:
        raise RuntimeError("fused and foreach exclude each other")
    return options


def _check_at_least_0(name, value):
    if not number(value) >= 0:
        raise ValueError(f"an optimiser's {name} is at least 0, not {shown(value)}")


def _check_betas(betas):
    for i in range(2):
        if not 0.0 <= number(betas[i]) < 1.0:
            raise ValueError(f"betas[{i}] lies in [0, 1), {betas[i]} does not")


class _InCpp(Optimizer):
    _runs_pending = True

    def step(self, closure=None):
        """Records one update of every parameter that has a gradient. A closure is called first;
        step() returns its loss."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        self._record(self.param_groups, self.state, self._stepper)
        return loss


class SGD(_InCpp):
    """Stochastic gradient descent, with momentum if it is not 0."""

    _record = staticmethod(_C.optim._step_SGD)

    def __init__(self, params, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *,
                 maximize=False, foreach=None, differentiable=False, fused=None):
        options = _options(locals())
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("SGD: nesterov goes with a momentum above 0 and no dampening")
        super().__init__(params, options)


class Adam(_InCpp):
    """Adam (Kingma and Ba, 2015)."""

    _record = staticmethod(_C.optim._step_Adam)

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False,
                 *, foreach=None, maximize=False, capturable=False, differentiable=False,
                 fused=None, decoupled_weight_decay=False):
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueError("Adam: with foreach, a tensor as lr goes with capturable only")
        options = _options(locals())
        if (isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor) or
                any(isinstance(b, int) for b in betas)):
            raise ValueError("Adam: betas are two floats or two tensors")
        for i, beta in enumerate(betas):
            if isinstance(beta, Tensor) and foreach and not capturable:
                raise ValueError(
                    f"Adam: with foreach, a tensor as betas[{i}] goes with capturable only")
        super().__init__(params, options | {"betas": tuple(map(number, betas))})


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019)."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2,
                 amsgrad=False, *, maximize=False, foreach=None, capturable=False,
                 differentiable=False, fused=None):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach,
                         maximize=maximize, capturable=capturable, differentiable=differentiable,
                         fused=fused, decoupled_weight_decay=True)


class NAdam(_InCpp):
    """Adam with Nesterov's momentum (Dozat, 2016)."""

    _record = staticmethod(_C.optim._step_NAdam)
    _counted = ("step", "mu_product")

    def __init__(self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0,
                 momentum_decay=4e-3, decoupled_weight_decay=False, *, foreach=None, maximize=False,
                 capturable=False, differentiable=False):
        super().__init__(params, _options(locals()))


class RAdam(_InCpp):
    """Adam whose variance is rectified (Liu et al., 2020)."""

    _record = staticmethod(_C.optim._step_RAdam)

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0,
                 decoupled_weight_decay=False, *, foreach=None, maximize=False, capturable=False,
                 differentiable=False):
        super().__init__(params, _options(locals()))


class Adamax(_InCpp):
    """Adam with the largest gradient instead of the variance (Kingma and Ba, 2015)."""

    _record = staticmethod(_C.optim._step_Adamax)

    def __init__(self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, foreach=None,
                 *, maximize=False, differentiable=False, capturable=False):
        super().__init__(params, _options(locals()))


class RMSprop(_InCpp):
    """RMSprop (Hinton, 2012)."""

    _record = staticmethod(_C.optim._step_RMSprop)

    def __init__(self, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0,
                 centered=False, capturable=False, foreach=None, maximize=False,
                 differentiable=False):
        _check_at_least_0("alpha", alpha)
        super().__init__(params, _options(locals()))


class Adagrad(_InCpp):
    """Adagrad (Duchi et al., 2011)."""

    _record = staticmethod(_C.optim._step_Adagrad)

    def __init__(self, params, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0,
                 eps=1e-10, foreach=None, *, maximize=False, differentiable=False, fused=None):
        super().__init__(params, _options(locals()))
        self._start()

    def add_param_group(self, param_group):
        """Adds a group: a dict with "params" and options that differ from the defaults."""
        super().add_param_group(param_group)
        if len(self.state) > 0:
            self._start()

    def _start(self):
        """Creates the sums before the first step, as PyTorch does."""
        for group in self.param_groups:
            for p in group["params"]:
                if p not in self.state:
                    start = number(group["initial_accumulator_value"])
                    start = complex(start, start) if p.is_complex() else start
                    self.state[p] = {"step": 0.0, "sum": _C.full_like(p.detach(), start)}

    def share_memory(self):
        """Does nothing: processes do not share the state."""


class Adadelta(_InCpp):
    """Adadelta (Zeiler, 2012)."""

    _record = staticmethod(_C.optim._step_Adadelta)

    def __init__(self, params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, foreach=None, *,
                 capturable=False, maximize=False, differentiable=False):
        options = _options(locals())
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Adadelta: rho lies in [0, 1], {rho} does not")
        super().__init__(params, options)


class ASGD(_InCpp):
    """Averaged stochastic gradient descent (Polyak and Juditsky, 1992)."""

    _record = staticmethod(_C.optim._step_ASGD)
    _counted = ("step", "eta", "mu")

    def __init__(self, params, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0,
                 foreach=None, maximize=False, differentiable=False, capturable=False):
        super().__init__(params, _options(locals()))


class Rprop(_InCpp):
    """Resilient propagation (Riedmiller and Braun, 1993)."""

    _record = staticmethod(_C.optim._step_Rprop)

    def __init__(self, params, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), *, capturable=False,
                 foreach=None, maximize=False, differentiable=False):
        options = _options(locals())
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError("Rprop: etas are a shrinking and a growing factor, 0 < a < 1 < b; "
                             f"{etas[0]} and {etas[1]} are not")
        super().__init__(params, options)


class Lion(_InCpp):
    """Lion (Chen et al., 2023), which PyTorch does not have: moves by lr in the direction of the
    sign of a running mean."""

    _record = staticmethod(_C.optim._step_Lion)

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0, *, maximize=False):
        super().__init__(params, _options(locals()))


class Adafactor(_InCpp):
    """Adafactor (Shazeer and Stern, 2018)."""

    @staticmethod
    def _record(groups, state, stepper):
        if any(p.grad is not None and p.is_complex() for group in groups for p in group["params"]):
            raise RuntimeError("Adafactor: takes no complex parameters")
        _C.optim._step_Adafactor(groups, state, stepper)

    def __init__(self, params, lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0,
                 *, foreach=None, maximize=False):
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Adafactor: a tensor as lr has one element")
        for name, value in {"lr": lr, "epsilon1": eps[0], "epsilon2": eps[1],
                            "weight_decay": weight_decay}.items():
            if value is not None and not number(value) >= 0:
                raise ValueError(f"Adafactor: {name} is at least 0, not {shown(value)}")
        if not beta2_decay <= 0:
            raise ValueError(f"Adafactor: beta2_decay is at most 0, not {beta2_decay}")
        if not d >= 1:
            raise ValueError(f"Adafactor: d, where updates are clipped, is at least 1, not {d}")
        super().__init__(params,
                         dict(lr=lr, beta2_decay=beta2_decay, eps=eps, d=d,
                              weight_decay=weight_decay, foreach=foreach, maximize=maximize))


class SparseAdam(Optimizer):
    """Adam for sparse gradients, which do not exist here: a step is an error, as in PyTorch for
    dense gradients."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
        check_lr(lr, positive=True)
        if not 0.0 < eps:
            raise ValueError(f"SparseAdam: eps is above 0, not {eps}")
        _check_betas(betas)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, maximize=maximize))
        places = [[i, j] for i, group in enumerate(self.param_groups)
                  for j, p in enumerate(group["params"]) if p.is_complex()]
        if places:
            raise ValueError(f"SparseAdam: takes no complex parameters, as those at {places} are")

    def step(self, closure=None):
        """Raises an error if there are gradients, which are always dense."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        if any(p.grad is not None for group in self.param_groups for p in group["params"]):
            raise RuntimeError("SparseAdam: gradients are dense here; Adam is for them")
        return loss
