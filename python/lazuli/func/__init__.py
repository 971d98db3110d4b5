"""Transforms of functions, and functions of modules as functions of their tensors."""

from lazuli import _C
from lazuli.func._axes import axis_index, axis_size, pmax, pmean, pmin, psum
from lazuli.func._custom import checkpoint, custom_jvp, custom_vjp, remat, stop_gradient
from lazuli.func._jit import jit
from lazuli.func._transforms import (debug_unwrap, functionalize, grad, grad_and_value, hessian,
                                     jacfwd, jacrev, jvp, linearize, value_and_grad, vjp)
from lazuli.func._vmap import vmap
from lazuli.nn._kinds import _BatchNorm
from lazuli.nn.utils.stateless import functional_call

__all__ = ["axis_index", "axis_size", "checkpoint", "custom_jvp", "custom_vjp", "debug_unwrap",
           "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd",
           "jacrev", "jit", "jvp", "linearize", "pmax", "pmean", "pmin", "psum", "remat",
           "replace_all_batch_norm_modules_", "stack_module_state", "stop_gradient",
           "value_and_grad", "vjp", "vmap"]


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


def replace_all_batch_norm_modules_(root):
    """Makes all batch norms in the module use the statistics of their batch, in place, and returns
    the module. Running statistics are removed, because a function of tensors cannot change them."""
    for module in root.modules():
        if isinstance(module, _BatchNorm) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
