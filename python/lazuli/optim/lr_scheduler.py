"""Schedules of learning rates, as in PyTorch: they are made of an optimiser, and change the rates
of its groups at each step().

Most compute the next rate from the present one, so several schedules of one optimiser multiply.
step(epoch) and SequentialLR, which restarts a schedule, use the closed form. Changing a learning
rate does not compile anything.
"""

import functools
import math
import threading
import types
import warnings
from bisect import bisect_right
from collections import Counter

from lazuli import _C
from lazuli._C import Tensor
from lazuli.optim.optimizer import Optimizer, number, shown

__all__ = ["ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts",
           "CyclicLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR",
           "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR",
           "StepLR"]


def _values(optimizer, key):
    return [group[key].clone() if isinstance(group[key], Tensor) else group[key]
            for group in optimizer.param_groups]


def _set(group, key, value):
    if isinstance(group[key], Tensor):
        group[key].fill_(number(value))
    else:
        group[key] = value


def _for_groups(name, optimizer, value):
    """A list with one value per group."""
    groups = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * groups
    if len(value) != groups:
        raise ValueError(f"{name} has {len(value)} values for {groups} groups of parameters")
    return list(value)


def _check_optimizer(optimizer):
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"a schedule is of an Optimizer, not of {type(optimizer).__name__}")


def _mark_steps(optimizer):
    """Records from now on whether optimizer.step() was called."""
    if "_opt_called" not in vars(optimizer):
        optimizer._opt_called = False

        def mark(optimizer, args, kwargs):
            optimizer._opt_called = True

        optimizer.register_step_post_hook(mark)


_inside = threading.local()  # `step`: whether a step of a schedule is made around this one


def _replayed(step):
    """A step that a replay of a compiled function, which has it, makes again (docs/compile.md)."""

    @functools.wraps(step)
    def stepped(self, *args, **kwargs):
        if not _C._is_watched() or getattr(_inside, "step", False):
            return step(self, *args, **kwargs)
        if args or kwargs:
            _C._refuse_replay("gives a schedule's step a number")
        _inside.step = True
        try:
            step(self, *args, **kwargs)
        finally:
            _inside.step = False
        return _C._call_again(self, functools.partial(step, self))

    return stepped


class LRScheduler:
    """The base of schedules.

    A schedule of your own defines get_lr(), which returns one rate per group for self.last_epoch.
    """

    _is_initial = False
    _inside_step = False
    _left_out = ("optimizer",)  # of state_dict()

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "step" in vars(cls):
            cls.step = _replayed(cls.step)

    def __init__(self, optimizer, last_epoch=-1):
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", number(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(f"param_groups[{i}] has no 'initial_lr', from which a schedule with "
                               "last_epoch goes on: load the optimiser's state first")
        self.base_lrs = _values(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _mark_steps(optimizer)
        self._initial_step()

    def _initial_step(self):
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self):
        """The state for load_state_dict(): everything but the optimiser and functions."""
        return {key: value for key, value in vars(self).items() if key not in self._left_out}

    def load_state_dict(self, state_dict):
        """Continues from a state."""
        self.__dict__.update(state_dict)

    def get_last_lr(self):
        """The present rate of each group."""
        if _C._is_watched():
            _C._refuse_replay("asks a schedule for its rates")
        return self._last_lr

    def get_lr(self):
        """The rates at self.last_epoch, from the rates before; some schedules also set the
        momentum."""
        if not self._inside_step:
            warnings.warn("get_lr() is for step(); get_last_lr() gives the learning rates of now",
                          UserWarning, stacklevel=2)
        return self._rates()

    def _rates(self):
        raise NotImplementedError

    @_replayed
    def step(self, epoch=None):
        """Advances to the next step, or to the given epoch."""
        if self._step_count == 1 and not self.optimizer._opt_called:
            warnings.warn("a schedule went on before the first step of its optimiser, so the first "
                          "learning rate is never used: call optimizer.step(), then "
                          "scheduler.step()", UserWarning, stacklevel=2)
        self._step_count += 1
        self._update_lr(epoch)

    def _update_lr(self, epoch=None):
        self._inside_step = True
        try:
            self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
            closed = epoch is not None and hasattr(self, "_get_closed_form_lr")
            values = self._get_closed_form_lr() if closed else self.get_lr()
        finally:
            del self._inside_step
        for group, lr in zip(self.optimizer.param_groups, values, strict=True):
            _set(group, "lr", lr)
        self._last_lr = _values(self.optimizer, "lr")

    def _present(self):
        return _values(self.optimizer, "lr")

    def _times(self, factor):
        return [group["lr"] * factor for group in self.optimizer.param_groups]


def _state_of_functions(functions):
    """The attributes of callable objects; None for plain functions."""
    return [None if isinstance(f, types.FunctionType) else vars(f).copy() for f in functions]


class _OfFunctions(LRScheduler):
    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        _check_optimizer(optimizer)
        if isinstance(lr_lambda, (list, tuple)):
            if len(lr_lambda) != len(optimizer.param_groups):
                raise ValueError(f"{type(self).__name__}: {len(lr_lambda)} functions for "
                                 f"{len(optimizer.param_groups)} groups of parameters")
            self.lr_lambdas = list(lr_lambda)
        else:
            self.lr_lambdas = [lr_lambda] * len(optimizer.param_groups)
        super().__init__(optimizer, last_epoch)

    def _factors(self):
        factors = [f(self.last_epoch) for f in self.lr_lambdas]
        for factor in factors:
            if not isinstance(factor, (int, float, Tensor)) and not hasattr(factor, "__float__"):
                raise TypeError(f"{type(self).__name__}: the function must give a float, not "
                                f"{type(factor).__name__}")
        return factors

    def state_dict(self):
        """The state for load_state_dict(). Functions are left out, but the attributes of callable
        objects are kept."""
        return super().state_dict() | {"lr_lambdas": _state_of_functions(self.lr_lambdas)}

    def load_state_dict(self, state_dict):
        """Continues from a state."""
        kept = state_dict["lr_lambdas"]
        self.__dict__.update({key: value
                              for key, value in state_dict.items() if key != "lr_lambdas"})
        for function, values in zip(self.lr_lambdas, kept, strict=True):
            if values is not None:
                vars(function).update(values)


class LambdaLR(_OfFunctions):
    """base * lr_lambda(t); a list has one function per group."""

    def _rates(self):
        return [base * factor for base, factor in zip(self.base_lrs, self._factors(), strict=True)]


class MultiplicativeLR(_OfFunctions):
    """The present rate times lr_lambda(t)."""

    def _rates(self):
        if self._is_initial:
            return self._present()
        return [lr * factor for lr, factor in zip(self._present(), self._factors(), strict=True)]


class StepLR(LRScheduler):
    """base * gamma^(t / step_size), rounded down."""

    def __init__(self, optimizer, step_size, gamma=0.1, last_epoch=-1):
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def _rates(self):
        drops = self.last_epoch != 0 and self.last_epoch % self.step_size == 0
        return self._times(self.gamma) if drops else self._present()

    def _get_closed_form_lr(self):
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """base * gamma^(number of milestones up to t)."""

    def __init__(self, optimizer, milestones, gamma=0.1, last_epoch=-1):
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def _rates(self):
        if self.last_epoch not in self.milestones:
            return self._present()
        return self._times(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self):
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma ** passed for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """base * factor up to step total_iters, then base."""

    def __init__(self, optimizer, factor=1.0 / 3, total_iters=5, last_epoch=-1):
        if not 0 <= factor <= 1:
            raise ValueError(f"ConstantLR: factor lies in [0, 1], {factor} does not")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _rates(self):
        if self.last_epoch == 0:
            return self._times(self.factor)
        return (self._times(1.0 / self.factor) if self.last_epoch == self.total_iters
                else self._present())

    def _get_closed_form_lr(self):
        return [base * (1 if self.last_epoch >= self.total_iters else self.factor)
                for base in self.base_lrs]


class LinearLR(LRScheduler):
    """base times a factor that changes linearly from start_factor to end_factor over total_iters
    steps and then stays constant."""

    def __init__(self, optimizer, start_factor=1.0 / 3, end_factor=1.0, total_iters=5,
                 last_epoch=-1):
        if not 0 < start_factor <= 1:
            raise ValueError(f"LinearLR: start_factor lies in (0, 1], {start_factor} does not")
        if not 0 <= end_factor <= 1:
            raise ValueError(f"LinearLR: end_factor lies in [0, 1], {end_factor} does not")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _rates(self):
        if self.last_epoch == 0:
            return self._times(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._present()
        rise = self.end_factor - self.start_factor
        return self._times(1.0 + rise /
                           (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise))

    def _get_closed_form_lr(self):
        rise = self.end_factor - self.start_factor
        return [base * (self.start_factor + rise * min(self.total_iters, self.last_epoch) /
                        self.total_iters) for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """base * gamma^t."""

    def __init__(self, optimizer, gamma, last_epoch=-1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _rates(self):
        return self._present() if self._is_initial else self._times(self.gamma)

    def _get_closed_form_lr(self):
        return [base * self.gamma ** self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """base * (1 - t / total_iters)^power, 0 from step total_iters on."""

    def __init__(self, optimizer, total_iters=5, power=1.0, last_epoch=-1):
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def _rates(self):
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._present()
        left = (1.0 - self.last_epoch / self.total_iters) / (
            1.0 - (self.last_epoch - 1) / self.total_iters)
        return self._times(left ** self.power)

    def _get_closed_form_lr(self):
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * left ** self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the base to eta_min at step T_max, and back."""

    def __init__(self, optimizer, T_max, eta_min=0.0, last_epoch=-1):  # noqa: N803
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def _rates(self):
        t, low = self.last_epoch, self.eta_min
        if self._is_initial:
            return self._present()
        if self._step_count == 1 and t > 0:
            return self._get_closed_form_lr()
        # The rate before is eta_min, from which no factor leads away.
        if (t - 1 - self.T_max) % (2 * self.T_max) == 0:
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [lr + (base - low) * rise
                    for base, lr in zip(self.base_lrs, self._present(), strict=True)]
        factor = (1 + math.cos(math.pi * t / self.T_max)) / (
            1 + math.cos(math.pi * (t - 1) / self.T_max))
        return [factor * (lr - low) + low for lr in self._present()]

    def _get_closed_form_lr(self):
        share = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine from the base to eta_min over T_0 steps, then again; each cycle is T_mult times
    as long as the one before."""

    def __init__(self, optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1):  # noqa: N803
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(
                f"CosineAnnealingWarmRestarts: T_0 is a positive integer, not {shown(T_0)}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(
                f"CosineAnnealingWarmRestarts: T_mult is a positive integer, not {shown(T_mult)}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(
                f"CosineAnnealingWarmRestarts: eta_min is a number, not {shown(eta_min)}")
        self.T_0, self.T_i, self.T_mult, self.eta_min, self.T_cur = (T_0, T_0, T_mult, eta_min,
                                                                     last_epoch)
        super().__init__(optimizer, last_epoch)

    def _rates(self):
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

    def step(self, epoch=None):
        """Advances to the next step, or to the given epoch, which may be a fraction."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ValueError(f"CosineAnnealingWarmRestarts: an epoch is at least 0, not {epoch}")
        elif epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult ** n - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult ** n
        self.last_epoch = math.floor(epoch) - 1
        self._update_lr()


def _check_parts(name, schedulers, optimizer, chained):
    for i, scheduler in enumerate(schedulers):
        if not hasattr(scheduler, "optimizer"):
            raise TypeError(f"{name}: schedule {i} has no optimizer")
        if isinstance(scheduler, ReduceLROnPlateau):
            raise ValueError(f"{name}: schedule {i} is a ReduceLROnPlateau, whose step() takes a "
                             "measure that the others have not")
        if optimizer is not scheduler.optimizer:
            raise ValueError(f"{name}: schedule {i}, a {type(scheduler).__name__}, is of another "
                             f"optimiser than this {type(optimizer).__name__}")


class _OfSchedulers(LRScheduler):
    def state_dict(self):
        """What load_state_dict() takes, with the states of the schedules."""
        return super().state_dict() | {"_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict):
        """Goes on from a state."""
        self.__dict__.update({key: value
                              for key, value in state_dict.items() if key != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)


class SequentialLR(_OfSchedulers):
    """One schedule after the other: schedule i + 1 starts with its step 0 at milestone i."""

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1):
        name = type(self).__name__
        if len(schedulers) < 1:
            raise ValueError(f"{name}: takes at least one schedule")
        _check_parts(name, schedulers, optimizer, chained=False)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(f"{name}: between {len(schedulers)} schedules there are "
                             f"{len(schedulers) - 1} milestones, not {len(milestones)}")
        self._schedulers, self._milestones = schedulers, milestones
        self.last_epoch, self.optimizer = last_epoch + 1, optimizer
        for group in optimizer.param_groups:  # as if only the first schedule had been made
            _set(group, "lr", group["initial_lr"])
        self._undo(self)
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def _undo(self, scheduler):
        if hasattr(scheduler, "_schedulers"):
            for inner in scheduler._schedulers:
                self._undo(inner)
        elif hasattr(scheduler, "last_epoch"):
            scheduler.last_epoch -= 1

    def step(self):
        """Advances to the next step."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_OfSchedulers):
    """Several schedules at the same time, whose factors multiply."""

    def __init__(self, schedulers, optimizer=None):
        name = type(self).__name__
        if len(schedulers) < 1:
            raise ValueError(f"{name}: takes at least one schedule")
        optimizer = optimizer or schedulers[0].optimizer
        _check_parts(name, schedulers, optimizer, chained=True)
        self._schedulers, self.optimizer = schedulers, optimizer
        self._last_lr = _values(optimizer, "lr")

    def step(self):
        """Advances to the next step."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = _values(self.optimizer, "lr")


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the learning rate by factor once a metric has not improved for more than patience
    steps."""

    def __init__(self, optimizer, mode="min", factor=0.1, patience=10, threshold=1e-4,
                 threshold_mode="rel", cooldown=0, min_lr=0, eps=1e-8):
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau: factor is below 1, not {factor}")
        _check_optimizer(optimizer)
        groups = len(optimizer.param_groups)
        if isinstance(min_lr, (list, tuple)) and len(min_lr) != groups:
            raise ValueError(f"ReduceLROnPlateau: min_lr has {len(min_lr)} values for {groups} "
                             "groups of parameters")
        if mode not in ("min", "max"):
            raise ValueError(f"ReduceLROnPlateau: mode is 'min' or 'max', not {shown(mode)}")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(
                f"ReduceLROnPlateau: threshold_mode is 'rel' or 'abs', not {shown(threshold_mode)}")
        self.optimizer, self.factor, self.patience, self.cooldown, self.eps = (
            optimizer, factor, patience, cooldown, eps)
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.min_lrs = _for_groups("min_lr", optimizer, min_lr)
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.last_epoch = 0
        self._last_lr = _values(optimizer, "lr")
        self._reset()

    def _reset(self):
        self.best, self.cooldown_counter, self.num_bad_epochs = self.mode_worse, 0, 0

    @property
    def in_cooldown(self):
        """Whether bad epochs are not counted, because of a recent reduction."""
        return self.cooldown_counter > 0

    def step(self, metrics, epoch=None):
        """Processes the metric of an epoch."""
        metric = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(metric, self.best):
            self.best, self.num_bad_epochs = metric, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = _values(self.optimizer, "lr")

    def _is_better(self, metric, best):
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "rel":
            return sign * metric > sign * best * (1 + sign * self.threshold)
        return sign * metric > sign * best + self.threshold

    def _reduce(self):
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"ReduceLROnPlateau: its optimiser has {len(groups)} groups of parameters, it "
                    f"had {len(self.min_lrs)} when the schedule was made; set min_lrs to as many")
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                _set(group, "lr", new)


def _has_momentum(optimizer):
    """Whether the momentum is in betas; ValueError if the optimiser has no momentum."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError("cycle_momentum is for optimisers with momentum or betas")
    return "betas" in optimizer.defaults


def _set_momentum(group, momentum, in_betas):
    if in_betas:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum


class _OfMomentum(LRScheduler):
    """The base of schedules that change the momentum, or the first beta, in the direction opposite
    to the learning rate."""

    def _start_momentum(self, base, most, last_epoch):
        optimizer = self.optimizer
        self.use_beta1 = _has_momentum(optimizer)
        self._base_momentums = _for_groups("base_momentum", optimizer, base)
        self._max_momentums = _for_groups("max_momentum", optimizer, most)
        if last_epoch != -1:
            return
        for group, low, high in zip(optimizer.param_groups, self._base_momentums,
                                    self._max_momentums, strict=True):
            _set_momentum(group, high, self.use_beta1)
            group["max_momentum"], group["base_momentum"] = high, low


class CyclicLR(_OfMomentum):
    """Lines from base_lr up to max_lr in step_size_up steps and back, repeatedly (Smith, 2017)."""

    _left_out = ("optimizer", "_scale_fn_custom")

    def __init__(self, optimizer, base_lr, max_lr, step_size_up=2000, step_size_down=None,
                 mode="triangular", gamma=1.0, scale_fn=None, scale_mode="cycle",
                 cycle_momentum=True, base_momentum=0.8, max_momentum=0.9, last_epoch=-1):
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = _for_groups("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                _set(group, "lr", lr)
        self.max_lrs = _for_groups("max_lr", optimizer, max_lr)
        down = step_size_up if step_size_down is None else step_size_down
        for name, size in (("step_size_up", step_size_up), ("step_size_down", down)):
            if not isinstance(size, (int, float)):
                raise TypeError(f"CyclicLR: {name} is a number, not {shown(size)}")
        up = float(step_size_up)
        self.total_size = up + float(down)
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("CyclicLR: mode is 'triangular', 'triangular2' or 'exp_range', not "
                             f"{shown(mode)}, unless there is a scale_fn")
        self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
        self.scale_mode = (scale_mode if scale_fn is not None
                           else "iterations" if mode == "exp_range" else "cycle")
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._start_momentum(base_momentum, max_momentum, last_epoch)
            self.base_momentums, self.max_momentums = self._base_momentums, self._max_momentums
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x):
        """The height of a cycle, which starts as 1, for the number of the cycle or of the step."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return {"triangular": 1.0, "triangular2": 1 / (2.0 ** (x - 1)),
                "exp_range": self.gamma ** x}[self.mode]

    def _rates(self):
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        share = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height = share * self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums,
                                        self.max_momentums, strict=True):
                _set_momentum(group, high - (high - low) * height, self.use_beta1)
        return [low + (high - low) * height
                for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self):
        """The state for load_state_dict(). scale_fn is left out, but the attributes of a callable
        object are kept."""
        fn = self._scale_fn_custom
        kept = None if fn is None or isinstance(fn, types.FunctionType) else vars(fn).copy()
        return super().state_dict() | {"_scale_fn_custom": kept}

    def load_state_dict(self, state_dict):
        """Continues from a state."""
        kept = state_dict.get("_scale_fn_custom")
        super().load_state_dict({key: value
                                 for key, value in state_dict.items() if key != "_scale_fn_custom"})
        if kept is not None:
            vars(self._scale_fn_custom).update(kept)


class OneCycleLR(_OfMomentum):
    """One cycle (Smith and Topin, 2017): from max_lr / div_factor up to max_lr for the share
    pct_start of the steps, then down to the initial rate / final_div_factor."""

    def __init__(self, optimizer, max_lr, total_steps=None, epochs=None, steps_per_epoch=None,
                 pct_start=0.3, anneal_strategy="cos", cycle_momentum=True, base_momentum=0.85,
                 max_momentum=0.95, div_factor=25.0, final_div_factor=1e4, three_phase=False,
                 last_epoch=-1):
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            raise ValueError("OneCycleLR: takes total_steps, or epochs and steps_per_epoch")
        counts = ({"total_steps": total_steps} if total_steps is not None
                  else {"epochs": epochs, "steps_per_epoch": steps_per_epoch})
        for name, count in counts.items():
            if not isinstance(count, int) or count <= 0:
                raise ValueError(f"OneCycleLR: {name} is a positive integer, not {shown(count)}")
        self.total_steps = total_steps if total_steps is not None else epochs * steps_per_epoch
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"OneCycleLR: pct_start is a float in [0, 1], not {shown(pct_start)}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"OneCycleLR: anneal_strategy is 'cos' or 'linear', not {shown(anneal_strategy)}")
        self._anneal_func_type = anneal_strategy
        top = float(pct_start * self.total_steps) - 1

        def phase(end, rates, momenta):
            return {"end_step": end, "start_lr": rates[0], "end_lr": rates[1],
                    "start_momentum": momenta[0], "end_momentum": momenta[1]}

        high, low, last = "max_momentum", "base_momentum", self.total_steps - 1
        self._schedule_phases = [phase(top, ("initial_lr", "max_lr"), (high, low))]
        if three_phase:
            self._schedule_phases += [phase(float(2 * pct_start * self.total_steps) - 2,
                                            ("max_lr", "initial_lr"), (low, high)),
                                      phase(last, ("initial_lr", "min_lr"), (high, high))]
        else:
            self._schedule_phases += [phase(last, ("max_lr", "min_lr"), (low, high))]
        if last_epoch == -1:
            for group, most in zip(optimizer.param_groups, _for_groups("max_lr", optimizer, max_lr),
                                   strict=True):
                group["initial_lr"], group["max_lr"] = most / div_factor, most
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._start_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _between(self, start, end, share):
        if self._anneal_func_type == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)

    def _rates(self):
        t = self.last_epoch
        if t > self.total_steps:
            raise ValueError(f"OneCycleLR: step {t} is behind the last one of {self.total_steps}")
        start = 0.0
        for phase in self._schedule_phases:
            if t <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            start = phase["end_step"]
        share = (t - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], share))
            if self.cycle_momentum:
                momentum = self._between(group[phase["start_momentum"]],
                                         group[phase["end_momentum"]], share)
                _set_momentum(group, momentum, self.use_beta1)
        return rates


_LRScheduler = LRScheduler  # PyTorch's old name
