"""Hooks of modules: before and after forward(), for gradients of inputs and outputs, and for
states."""

from lazuli._C import Tensor
from lazuli._C.nn import Module, _use_hooks
from lazuli.autograd.function import Function
from lazuli.utils.hooks import RemovableHandle

_KINDS = ("forward_pre", "forward", "backward_pre", "backward", "state_pre", "state_post",
          "load_pre", "load_post")
_everywhere = {kind: {} for kind in _KINDS}


def _register(hooks, kind, hook, prepend, everywhere=False):
    _use_hooks(_call, everywhere)
    return RemovableHandle(hooks[kind], hook, prepend)


def _own(module):
    return vars(module).setdefault("_hooks", {kind: {} for kind in _KINDS})


def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
    """Calls hook(module, args) before forward(), or hook(module, args, kwargs); what it gives takes
    the place of the arguments."""
    return _register(_own(self), "forward_pre", (hook, with_kwargs), prepend)


def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
    """Calls hook(module, args, output) after forward(), or hook(module, args, kwargs, output); what
    it gives takes the place of output.

    With always_call also where forward() raises, with None as output.
    """
    return _register(_own(self), "forward", (hook, with_kwargs, always_call), prepend)


def register_full_backward_pre_hook(self, hook, prepend=False):
    """Calls hook(module, grad_output) in backward, before the gradients of the inputs are there;
    what it gives takes its place."""
    return _register(_own(self), "backward_pre", hook, prepend)


def register_full_backward_hook(self, hook, prepend=False):
    """Calls hook(module, grad_input, grad_output) in backward; what it gives takes the place of
    grad_input."""
    return _register(_own(self), "backward", hook, prepend)


def register_state_dict_pre_hook(self, hook):
    """Calls hook(module, prefix, keep_vars) before state_dict() looks at the module."""
    return RemovableHandle(_own(self)["state_pre"], hook)


def register_state_dict_post_hook(self, hook):
    """Calls hook(module, state_dict, prefix, local_metadata) when the module and all in it are in
    the dict, which it may change."""
    return RemovableHandle(_own(self)["state_post"], hook)


def register_load_state_dict_pre_hook(self, hook):
    """Calls hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
    error_msgs) before load_state_dict() looks at a copy of the dict, which it may change, as the
    lists."""
    return RemovableHandle(_own(self)["load_pre"], hook)


def register_load_state_dict_post_hook(self, hook):
    """Calls hook(module, incompatible_keys) when all is loaded; names that it takes from the lists
    are not mistakes."""
    return RemovableHandle(_own(self)["load_post"], hook)


def register_module_forward_pre_hook(hook):
    """register_forward_pre_hook() of all modules."""
    return _register(_everywhere, "forward_pre", (hook, False), False, True)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """register_forward_hook() of all modules."""
    return _register(_everywhere, "forward", (hook, with_kwargs, always_call), False, True)


def register_module_full_backward_pre_hook(hook):
    """register_full_backward_pre_hook() of all modules."""
    return _register(_everywhere, "backward_pre", hook, False, True)


def register_module_full_backward_hook(hook):
    """register_full_backward_hook() of all modules."""
    return _register(_everywhere, "backward", hook, False, True)


class _Passing(Function):
    """The tensors as they are, whose gradients pass through a function."""

    @staticmethod
    def forward(ctx, function, *tensors):
        ctx.set_materialize_grads(False)
        ctx.function = function
        return tuple(t.detach() for t in tensors)

    @staticmethod
    def backward(ctx, *gradients):
        return (None, *ctx.function(gradients))


def _pass(values, function):
    """The values, whose tensors' gradients pass through function(), in the places that they have
    among the values; None if none does."""
    where = [i
             for i, value in enumerate(values) if isinstance(value, Tensor) and value.requires_grad]
    if not where:
        return None

    def call(gradients):
        spread = [None] * len(values)
        for i, gradient in zip(where, gradients, strict=True):
            spread[i] = gradient
        found = function(tuple(spread))
        return [found[i] for i in where]

    passed = list(values)
    for i, tensor in zip(where, _Passing.apply(call, *[values[i] for i in where]), strict=True):
        passed[i] = tensor
    return tuple(passed)


def _replaced(name, given, before):
    """What a hook gave in place of gradients."""
    if given is None:
        return before
    given = given if isinstance(given, tuple) else (given,)
    if len(given) != len(before):
        raise RuntimeError(
            f"{name}: the hook gave {len(given)} gradients in place of {len(before)}")
    return given


class _BackwardHooks:
    """One call of a module with hooks of its backward."""

    def __init__(self, module, before, after):
        self.module, self.before, self.after = module, before, after
        self.grad_output, self.inputs, self.passes = None, 0, False

    def enter(self, arguments):
        self.inputs = len(arguments)
        passed = _pass(arguments, self.of_inputs) if self.after else None
        self.passes = passed is not None
        return arguments if passed is None else passed

    def leave(self, output):
        several = isinstance(output, tuple)
        passed = _pass(output if several else (output,), self.of_outputs)
        return output if passed is None else passed if several else passed[0]

    def of_outputs(self, gradients):
        for hook in self.before:
            gradients = _replaced("register_full_backward_pre_hook", hook(self.module, gradients),
                                  gradients)
        self.grad_output = gradients
        if self.after and not self.passes:  # nothing that came in wants a gradient
            for hook in self.after:
                hook(self.module, (None,) * self.inputs, gradients)
        return gradients

    def of_inputs(self, gradients):
        for hook in self.after:
            gradients = _replaced("register_full_backward_hook",
                                  hook(self.module, gradients, self.grad_output), gradients)
        return gradients


def of(module, kind):
    """The hooks of a kind: those of all modules, then the module's own."""
    own = vars(module).get("_hooks")
    return [*_everywhere[kind].values(), *(own[kind].values() if own else ())]


def _call(module, *arguments, **named):
    """What calling a module does where there are hooks."""
    for hook, with_kwargs in of(module, "forward_pre"):
        given = hook(module, arguments, named) if with_kwargs else hook(module, arguments)
        if given is None:
            continue
        if not with_kwargs:
            arguments = given if isinstance(given, tuple) else (given,)
        elif isinstance(given, tuple) and len(given) == 2:
            arguments, named = given
        else:
            raise RuntimeError("forward pre-hook must return None or a tuple of (new_args, "
                               f"new_kwargs), but got {given}.")
    before, after = of(module, "backward_pre"), of(module, "backward")
    backward = _BackwardHooks(module, before, after) if before or after else None
    called = set()
    try:
        if backward is not None:
            arguments = backward.enter(arguments)
        output = module.forward(*arguments, **named)
        for entry in of(module, "forward"):
            called.add(id(entry))
            output = _after(entry, module, arguments, named, output)
    except Exception:
        for entry in of(module, "forward"):
            if entry[2] and id(entry) not in called:
                _after(entry, module, arguments, named, None)
        raise
    return output if backward is None else backward.leave(output)


def _after(entry, module, arguments, named, output):
    hook, with_kwargs, _ = entry
    given = (hook(module, arguments, named, output) if with_kwargs
             else hook(module, arguments, output))
    return output if given is None else given


for _function in (register_forward_pre_hook, register_forward_hook, register_full_backward_pre_hook,
                  register_full_backward_hook, register_state_dict_pre_hook,
                  register_state_dict_post_hook, register_load_state_dict_pre_hook,
                  register_load_state_dict_post_hook):
    setattr(Module, _function.__name__, _function)
Module.register_backward_hook = register_full_backward_hook
