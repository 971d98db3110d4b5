"""Gradients of maximum pools as functions of their input alone, so that no forward pass computes
and keeps indices for them."""

import torch

aten = torch.ops.aten
_LIBRARY = torch.library.Library("lazuli", "FRAGMENT")
_ARGUMENTS = ("Tensor gradient, Tensor x, int[] kernel, int[] stride, int[] padding, int[] "
              "dilation, bool ceil_mode")


def _gradient(rank):
    """The function of torch that the backward function of this rank becomes; torch runs it, too,
    where lazuli does not."""
    name = f"max_pool{rank}d_gradient"
    pool, backward = (getattr(aten, f"max_pool{rank}d_with_indices{suffix}").default
                      for suffix in ("", "_backward"))
    _LIBRARY.define(f"{name}({_ARGUMENTS}) -> Tensor")
    _LIBRARY.impl(name,
                  lambda gradient, x, *sizes: backward(gradient, x, *sizes, pool(x, *sizes)[1]),
                  "CPU")
    torch.library.register_fake(f"lazuli::{name}", lambda gradient, x, *_: torch.empty_like(x),
                                lib=_LIBRARY)
    return backward, getattr(torch.ops.lazuli, name).default


def _with_all(function):
    return (lambda gradient, x, kernel, stride, padding, dilation, ceil_mode, _:
            function(gradient, x, kernel, stride, padding, dilation, ceil_mode))


DECOMPOSITIONS = {backward: _with_all(function) for backward, function in map(_gradient, (2, 3))}
