"""Functions of modules as functions of their tensors."""

from lazuli import _C
from lazuli.nn.utils.stateless import functional_call

__all__ = ["functional_call", "stack_module_state"]


def stack_module_state(models):
    """Parameters and buffers of several equal modules, each stacked along a new first dim: two
    dicts."""
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({type(m) for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(each):
        found = [dict(pairs) for pairs in each]
        return {name: _C.stack([tensors[name].detach() for tensors in found]) for name in found[0]}

    parameters = stacked(m.named_parameters() for m in models)
    return ({name: p.requires_grad_() for name, p in parameters.items()},
            stacked(m.named_buffers() for m in models))
