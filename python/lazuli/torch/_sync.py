"""What brings the values of a step back to torch's tensors before somebody looks at the model or
the optimisers by way of their methods."""

import contextlib

import torch
from torch.utils._python_dispatch import _disable_current_modes


class Sync:
    """A hook.

    torch.compile traces it while torch's tensors are up to date, and guards that they are.
    """

    def __init__(self, step):
        self.step = step
        if step is not None:
            self.bring = torch.compiler.disable(
                step.sync_to_torch, reason="the model's values are in lazuli; call "
                "step.sync_to_torch() first, where all shall be one graph")

    def __call__(self, *_, **__):
        step = self.step
        if step is not None and step._stale and not step._tracing:
            self.bring()

    def __deepcopy__(self, memo):
        return Sync(None)  # a copy does not belong to a step

    def __reduce__(self):
        return Sync, (None,)


def _bring_back_part(module):
    for hook in module._state_dict_pre_hooks.values():
        if isinstance(hook, Sync):
            hook()


def _without_sync(state):
    """What a copy of a module has: it does not belong to a step."""
    made = {k: v for k, v in state.items() if not isinstance(v, First)}
    for name in ("_forward_pre_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks"):
        if name in made:
            made[name] = type(made[name])((k, h) for k, h in made[name].items()
                                          if not isinstance(getattr(h, "hook", h), Sync))
    return made


class First:
    """A method of a module's that reads parameters and has no hooks: brings values back first."""

    def __init__(self, module, name):
        self.module, self.name = module, name

    def __call__(self, *arguments, **keywords):
        _bring_back_part(self.module)
        made = getattr(type(self.module), self.name)(self.module, *arguments, **keywords)
        return (_without_sync(made) if self.name == "__getstate__" and isinstance(made, dict)
                else made)


def watch(model, optimizers, step):
    sync = Sync(step)
    model.register_forward_pre_hook(sync)
    for module in model.modules():
        module.register_state_dict_pre_hook(sync)
        module.register_load_state_dict_pre_hook(sync)
        for name in ("__getstate__", "__deepcopy__", "_apply"):
            if hasattr(type(module), name):
                vars(module).setdefault(name, First(module, name))
    for optimizer in optimizers:
        optimizer.register_state_dict_pre_hook(sync)
        optimizer.register_load_state_dict_pre_hook(sync)


def bring_back(module):
    """Brings back what steps have of a module's parameters."""
    for part in module.modules():
        _bring_back_part(part)


@contextlib.contextmanager
def outside_traces():
    """Within this nothing is recorded by who traces the user's function."""
    state = torch._C._get_tracing_state()
    torch._C._set_tracing_state(None)
    try:
        with _disable_current_modes(), torch.no_grad():
            yield
    finally:
        torch._C._set_tracing_state(state)
