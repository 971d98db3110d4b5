"""Fusion of a layer with the normalisation after it, which in evaluation is a linear function of
the channels."""

import copy

from lazuli import _C
from lazuli._C.nn import Parameter


def _check(optional=False, **tensors):
    for name, value in tensors.items():
        if not isinstance(value, _C.Tensor) and not (optional and value is None):
            raise TypeError(f"{name} must be a Tensor, not {type(value).__name__}")


def _factors(bias, mean, variance, eps, weight, shift):
    bias = _C.zeros_like(mean) if bias is None else bias
    weight = _C.ones_like(mean) if weight is None else weight
    shift = _C.zeros_like(mean) if shift is None else shift
    scale = weight * (variance + eps).rsqrt()
    return scale, (bias - mean) * scale + shift


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False):
    """Weight and bias of a convolution that replaces a convolution and a normalisation."""
    _check(conv_w=conv_w, bn_rm=bn_rm, bn_rv=bn_rv)
    _check(optional=True, conv_b=conv_b, bn_w=bn_w, bn_b=bn_b)
    scale, bias = _factors(conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
    dims = [1] * conv_w.ndim
    dims[1 if transpose else 0] = -1
    return tuple(Parameter(t.detach().to(conv_w.dtype))
                 for t in (conv_w * scale.reshape(dims), bias))


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """Weight and bias of a linear layer that replaces a linear layer and a normalisation."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def _fused(layer, norm, transpose):
    if layer.training or norm.training:
        raise AssertionError("Fusion only for eval!")
    fused = copy.deepcopy(layer)
    fused.weight, fused.bias = fuse_conv_bn_weights(fused.weight, fused.bias, norm.running_mean,
                                                    norm.running_var, norm.eps, norm.weight,
                                                    norm.bias, transpose)
    return fused


def fuse_conv_bn_eval(conv, bn, transpose=False):
    """A convolution for evaluation that replaces a convolution and the normalisation after it."""
    return _fused(conv, bn, transpose)


def fuse_linear_bn_eval(linear, bn):
    """A linear layer for evaluation that replaces a linear layer and the normalisation after it."""
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    return _fused(linear, bn, False)
