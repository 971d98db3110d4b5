"""Optimizer: groups of parameters with their options, the state of each parameter, and hooks."""

import functools
import warnings
from collections import OrderedDict, defaultdict
from copy import deepcopy

from lazuli import _C
from lazuli._C import Tensor
from lazuli._tensor import tensor
from lazuli.autograd import no_grad
from lazuli.nn import _mistakes
from lazuli.utils.hooks import RemovableHandle

_before_all, _after_all = OrderedDict(), OrderedDict()


class _Required:
    def __repr__(self):
        return "<required parameter>"


required = _Required()


def register_optimizer_step_pre_hook(hook):
    """Calls hook(optimizer, args, kwargs) before every step of any optimiser."""
    return RemovableHandle(_before_all, hook)


def register_optimizer_step_post_hook(hook):
    """Calls hook(optimizer, args, kwargs) after every step of any optimiser."""
    return RemovableHandle(_after_all, hook)


def number(value):
    """The number of an option, which may be a tensor."""
    return value.item() if isinstance(value, Tensor) else value


def shown(value):
    """The text of a value in a message, or of its type."""
    return value if isinstance(value, (int, float, str)) else f"a {type(value).__name__}"


def check_lr(lr, positive=False):
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("a tensor as lr has one element")
    if not (0.0 < number(lr) if positive else 0.0 <= number(lr)):
        raise ValueError(f"lr is {'above' if positive else 'at least'} 0, not {shown(lr)}")


def _with_hooks(step):
    """A step with the hooks around it; if the one before is still pending, what was recorded since
    is run first."""

    @functools.wraps(step)
    def hooked(self, *args, **kwargs):
        if _before_all or self._before_step:
            for hook in (*_before_all.values(), *self._before_step.values()):
                changed = hook(self, args, kwargs)
                if changed is None:
                    continue
                if not isinstance(changed, tuple) or len(changed) != 2:
                    raise RuntimeError(
                        f"a hook before step() gives None or (args, kwargs), not {shown(changed)}")
                args, kwargs = changed
        if not self._runs_pending:
            self._stepper.run_first(type(self).__name__)
        result = step(self, *args, **kwargs)
        if not self._runs_pending:
            self._stepper.set()
        if _after_all or self._after_step:
            for hook in (*self._after_step.values(), *_after_all.values()):
                hook(self, args, kwargs)
        return result

    hooked._is_hooked = True
    return hooked


class Optimizer:
    """What all optimisers have; one that is written in Python has a step() of its own.

    params are tensors, pairs of a name and a tensor, or dicts: groups with "params" and options
    that differ from the defaults. param_groups is a list of dicts, which may be changed before any
    step. state[p] is the dict of what is kept of p.
    """

    _runs_pending = False  # whether step() itself runs what an earlier step left pending
    _counted = ("step",)  # what of a state is a number here, and a tensor in state_dict()

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "step" in vars(cls) and not getattr(cls.step, "_is_hooked", False):
            cls.step = _with_hooks(cls.step)

    def __init__(self, params, defaults):
        self.defaults = defaults
        self._prepare()
        if isinstance(params, Tensor):
            raise TypeError(f"{type(self).__name__}: params are several tensors, or dicts of them, "
                            "not one tensor")
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError(f"{type(self).__name__}: there are no parameters to optimise")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _prepare(self):
        self._stepper = _C.optim._Stepper()
        _mistakes.watch(self)
        self._before_step, self._after_step = OrderedDict(), OrderedDict()
        self._before_state, self._after_state = OrderedDict(), OrderedDict()
        self._before_load, self._after_load = OrderedDict(), OrderedDict()

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        self.__dict__.update({"_state" if key == "state" else key: value
                              for key, value in state.items()})
        if "_stepper" not in self.__dict__:
            self._prepare()

    def __repr__(self):
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])

    @property
    def state(self):
        """What is kept of each parameter.

        What a step has counted and made goes back here if a check of its run failed.
        """
        if "_stepper" in self.__dict__:
            self._stepper.settle(self._state)
        return self._state

    @state.setter
    def state(self, state):
        self._state = state

    @property
    def lr(self):
        """The learning rate of the first group; assigning sets that of all.

        Changing it compiles nothing.
        """
        if _C._is_watched():
            _C._refuse_replay("asks an optimiser for its learning rate")
        return self.param_groups[0]["lr"]

    @lr.setter
    def lr(self, lr):
        if isinstance(lr, bool) or not isinstance(lr, (int, float, Tensor)):
            raise TypeError(f"lr must be float, not {type(lr).__name__}")
        check_lr(lr)
        for group in self.param_groups:
            group["lr"] = lr

    # --- groups

    def add_param_group(self, param_group):
        """Adds a group: a dict with "params", and with options that differ from the defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"{type(self).__name__}: a group of parameters is a dict, not "
                            f"{type(param_group).__name__}")
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError(f"{type(self).__name__}: a set has no order, in which states could be "
                            "saved; give the parameters as a list")
        params = [params] if isinstance(params, Tensor) else list(params)
        names = [p[0] for p in params if isinstance(p, tuple)]
        if names and len(names) != len(params):
            raise ValueError(
                f"{type(self).__name__}: some parameters of a group have names and others none")
        param_group["params"] = params = [p[1] if isinstance(p, tuple) else p for p in params]
        if names:
            param_group["param_names"] = names
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(
                    f"{type(self).__name__}: parameters are tensors, one is {type(p).__name__}")
            if not self.defaults.get("differentiable") and not (p.is_leaf or p.retains_grad):
                raise ValueError(
                    f"{type(self).__name__}: a parameter is a leaf, not the result of an op")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"{type(self).__name__}: a group of parameters lacks {name}, "
                                 "which has no default")
            param_group.setdefault(name, default)
        keys = {hash(p) for p in params}  # by which two handles of a tensor are known
        if len(keys) != len(params):
            warnings.warn(f"{type(self).__name__}: a group of parameters has one several times, "
                          "which is updated each time", stacklevel=3)
        for group in self.param_groups:
            if ("param_names" in param_group) != ("param_names" in group):
                how = "with names" if "param_names" in param_group else "without names"
                raise ValueError(f"{type(self).__name__}: groups have names for all parameters or "
                                 f"for none; the new one is {how}")
            if not keys.isdisjoint(hash(p) for p in group["params"]):
                raise ValueError(f"{type(self).__name__}: a parameter is in one group, one of "
                                 "these is in another already")
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none=True):
        """Removes the gradients, or sets them to 0."""
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p.grad = None
                elif p.grad is not None:
                    p.grad = _C.zeros_like(p.grad)

    def step(self, closure=None):
        """Updates the parameters. A closure, which computes the loss and the gradients, is called
        first."""
        raise NotImplementedError

    # --- state

    def state_dict(self):
        """What a training run goes on from, as PyTorch has it: {"state": {0: {"step": ..., ...}},
        "param_groups": [...]}.

        Parameters are numbers, in the order of the groups.
        """
        for hook in self._before_state.values():
            hook(self)
        numbers = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                numbers.setdefault(hash(p), len(numbers))
            groups.append({key: value for key, value in group.items() if key != "params"}
                          | {"params": [numbers[hash(p)] for p in group["params"]]})
        state = {numbers[hash(p)] if isinstance(p, Tensor) else p: self._packed(kept)
                 for p, kept in self.state.items()}
        packed = {"state": state, "param_groups": groups}
        for hook in self._after_state.values():
            changed = hook(self, packed)
            packed = packed if changed is None else changed
        return packed

    def _packed(self, kept):
        if not isinstance(kept, dict):
            return kept
        return {key: tensor(float(value), dtype=_C.float32) if key in self._counted and
                isinstance(value, (int, float)) else value for key, value in kept.items()}

    def load_state_dict(self, state_dict):
        """Loads the result of state_dict(), from here or from PyTorch; nothing changes unless the
        groups fit."""
        state_dict = dict(state_dict)
        for hook in self._before_load.values():
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        saved = [_copied(group) for group in state_dict["param_groups"]]
        if len(saved) != len(self.param_groups):
            raise ValueError(f"{type(self).__name__}: the state is of {len(saved)} groups of "
                             f"parameters, there are {len(self.param_groups)}")
        if any(len(new["params"]) != len(group["params"])
               for new, group in zip(saved, self.param_groups, strict=True)):
            raise ValueError(
                f"{type(self).__name__}: the state is of groups with other numbers of parameters")
        params = {number: p for new, group in zip(saved, self.param_groups, strict=True)
                  for number, p in zip(new["params"], group["params"], strict=True)}
        state = defaultdict(dict)
        with no_grad():
            for key, kept in state_dict["state"].items():
                p = params.get(key)
                state[key if p is None else p] = kept if p is None else self._fitted(p, kept, None)
        for new, group in zip(saved, self.param_groups, strict=True):
            new["params"] = group["params"]
            if "param_names" in group:
                new.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._after_load.values():
            hook(self)

    def _fitted(self, p, value, key):
        """A copy of a value on the parameter's device with its dtype; counts become numbers."""
        if isinstance(value, dict):
            return {k: self._fitted(p, v, k) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self._fitted(p, v, None) for v in value)
        if key in self._counted and value is not None:
            return float(value)
        if isinstance(value, Tensor) or (hasattr(value, "__array__") and hasattr(value, "dtype")):
            value = value if isinstance(value, Tensor) else tensor(value)
            return value.detach().to(dtype=p.dtype if p.is_floating_point() else None,
                                     device=p.device).clone()
        return deepcopy(value)

    # --- hooks

    def register_step_pre_hook(self, hook):
        """Calls hook(optimizer, args, kwargs) before each step; it may return other (args,
        kwargs)."""
        return RemovableHandle(self._before_step, hook)

    def register_step_post_hook(self, hook):
        """Calls hook(optimizer, args, kwargs) after each step."""
        return RemovableHandle(self._after_step, hook)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        """Calls hook(optimizer) before state_dict()."""
        return RemovableHandle(self._before_state, hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        """Calls hook(optimizer, state_dict) after state_dict(); it may return another one."""
        return RemovableHandle(self._after_state, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        """Calls hook(optimizer, state_dict) before load_state_dict(); it may return another one."""
        return RemovableHandle(self._before_load, hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        """Calls hook(optimizer) after load_state_dict()."""
        return RemovableHandle(self._after_load, hook, prepend)


def _copied(group):
    """A copy of a saved group, with numbers instead of tensors of other libraries."""
    def copied(value):
        if isinstance(value, Tensor):
            return value.clone()
        if hasattr(value, "__array__") and hasattr(value, "dtype"):
            return tensor(value)
        return deepcopy(value)

    return {key: copied(value) for key, value in group.items()}
