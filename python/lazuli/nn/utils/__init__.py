"""Utilities for modules, parameters and gradients."""

import math

from lazuli import _C
from lazuli._C import Tensor
from lazuli._C.nn import Module, utils as _utils
from lazuli.autograd.grad_mode import no_grad
from lazuli.nn.utils import parametrizations, parametrize, rnn, stateless
from lazuli.nn.utils.fusion import (fuse_conv_bn_eval, fuse_conv_bn_weights, fuse_linear_bn_eval,
                                    fuse_linear_bn_weights)
from lazuli.nn.utils.parametrizations import (remove_spectral_norm, remove_weight_norm,
                                              spectral_norm, weight_norm)

__all__ = ["clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "fuse_conv_bn_eval",
           "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights",
           "get_total_norm", "parameters_to_vector", "parametrizations", "parametrize",
           "remove_spectral_norm", "remove_weight_norm", "rnn", "skip_init", "spectral_norm",
           "stateless",
           "vector_to_parameters", "weight_norm"]


def _listed(tensors):
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _checked(norm, norm_type, wanted):
    if wanted and not math.isfinite(norm.item()):
        raise _C.InvalidArgumentError(f"The total norm of order {norm_type} for gradients from "
                                      "`parameters` is non-finite, so it cannot be clipped.")
    return norm


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of all tensors, taken as one vector. `foreach` has no effect."""
    norms = [tensor.norm(float(norm_type)) for tensor in _listed(tensors)]
    return _checked(_C.stack(norms).norm(float(norm_type)) if norms else _C.zeros(()), norm_type,
                    error_if_nonfinite)


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scales the gradients of the parameters so that their norm as one vector is at most max_norm,
    and returns the norm before.

    norm_type is 1, 2, ... or infinity, the largest absolute value. error_if_nonfinite reads the
    norm first, which is a sync.
    """
    parameters = _listed(parameters)
    if error_if_nonfinite:
        get_total_norm([p.grad for p in parameters if p.grad is not None], norm_type, True)
    return _utils.clip_grad_norm_(parameters, max_norm, float(norm_type))


def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scales the gradients like clip_grad_norm_(), with a given norm."""
    with no_grad():
        scale = (max_norm / (total_norm + 1e-6)).clamp(max=1.0)
        for parameter in _listed(parameters):
            if parameter.grad is not None:
                parameter.grad.mul_(scale)


def clip_grad_value_(parameters, clip_value, foreach=None):
    """Limits each element of the gradients to [-clip_value, clip_value]."""
    _utils.clip_grad_value_(_listed(parameters), clip_value)


def parameters_to_vector(parameters):
    """The elements of all parameters as one vector."""
    return _C.cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec, parameters):
    """Sets the elements of the parameters, in order, from a vector."""
    if not isinstance(vec, Tensor):
        raise _C.WrongTypeError(
            f"vector_to_parameters: expected a Tensor, but got {type(vec).__name__}")
    at = 0
    for parameter in parameters:
        size = parameter.numel()
        parameter.set_data(vec.detach()[at:at + size].reshape(parameter.shape).clone())
        at += size


def skip_init(module_cls, *args, **kwargs):
    """module_cls(*args, **kwargs) whose parameters are 0; the state of the generator does not
    change."""
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    state = _C.get_rng_state()
    made = module_cls(*args, **kwargs)
    _C.set_rng_state(state)
    with no_grad():
        for parameter in made.parameters():
            parameter.zero_()
    return made
