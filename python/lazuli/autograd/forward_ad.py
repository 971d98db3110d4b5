"""Forward-mode derivatives by tensors with tangents, as torch.autograd.forward_ad has them:

    with dual_level():
        y = f(make_dual(x, tangent))
        value, product = unpack_dual(y)       # f(x), and the Jacobian matrix of f times the tangent

A dual tensor is one with a history, which begins at make_dual(); unpack_dual() goes along it. So
what no_grad() and detach() hide has no tangent, and functions with gradients of their own keep
them.
"""

import contextlib
import threading
from typing import NamedTuple, Optional

from lazuli import _C
from lazuli._C import Tensor
from lazuli.autograd.grad_mode import enable_grad


class UnpackedDualTensor(NamedTuple):
    """What unpack_dual() returns: a tensor and its tangent, or None if it has none."""

    primal: Tensor
    tangent: Optional[Tensor]


class _Level(threading.local):
    def __init__(self):
        self.duals = None  # of the level: (where the history begins, the tangent); None: no level


_level = _Level()


def _check_level(level, what):
    if level not in (None, 0) or _level.duals is None:
        raise RuntimeError(f"{what}: there is no such level; make sure to enter_dual_level() first")


def enter_dual_level():
    """Begins a level, in which tensors can get tangents, and returns its number, 0. dual_level()
    does the same as a context."""
    if _level.duals is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment; the transforms "
                           "of lazuli.func nest")
    _level.duals = []
    return 0


def exit_dual_level(*, level=None):
    """Ends the level: no tensor has a tangent any more."""
    _check_level(level, "exit_dual_level")
    _level.duals = None


class dual_level(contextlib.ContextDecorator):
    """A level as a context or a decorator."""

    def __enter__(self):
        return enter_dual_level()

    def __exit__(self, *error):
        exit_dual_level()


def make_dual(tensor, tangent, *, level=None):
    """The tensor with this tangent, of the same shape and dtype. Both stay differentiable."""
    if level not in (None, 0) or _level.duals is None:
        raise RuntimeError("Trying to create a dual Tensor for forward AD but no level exists, "
                           "make sure to enter_dual_level() first.")
    for name, x in (("primal", tensor), ("tangent", tangent)):
        if not (x.is_floating_point() or x.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {x.dtype}")
    if tensor.shape != tangent.shape or tensor.dtype != tangent.dtype:
        raise RuntimeError("make_dual: Expected tangent to have the shape and dtype of the primal, "
                           f"{tuple(tensor.shape)} {tensor.dtype}, but got {tuple(tangent.shape)} "
                           f"{tangent.dtype}")
    if _tangent(tensor) is not None:
        raise RuntimeError("make_dual: Making a dual Tensor based on a Tensor that already has a "
                           "forward gradient at the same level is not supported.")
    with enable_grad():
        begin = tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()
        _level.duals.append((begin, tangent, tensor.requires_grad or tangent.requires_grad))
        return begin.clone()  # what the function may write to


def _is_kept():
    """Whether tangents have a history: that of a primal or a tangent of the level."""
    return any(kept for _, _, kept in _level.duals)


def _tangent(tensor):
    if not _level.duals or not tensor.requires_grad:
        return None
    begins, tangents, _ = zip(*_level.duals, strict=True)
    with enable_grad():
        weight = _C.zeros_like(tensor).detach().requires_grad_()
    products = _C._grad([tensor], list(begins), [weight], True, True, True, True)
    pairs = [(p, t) for p, t in zip(products, tangents, strict=True)
             if p is not None and p.requires_grad]
    found = None
    if pairs:
        found, = _C._grad([p for p, _ in pairs], [weight], [t for _, t in pairs], True, _is_kept(),
                          True)
    if found is None and any(p is not None for p in products):
        found = _C.zeros_like(tensor).detach()
    return found


def unpack_dual(tensor, *, level=None):
    """(the tensor without its tangent, its tangent), as a named tuple. The tangent is None for what
    depends on no dual tensor, and outside of a level."""
    if level not in (None, 0) or not _level.duals:
        return UnpackedDualTensor(tensor, None)
    tangent = _tangent(tensor)
    if tangent is None:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(tensor if _is_kept() else tensor.detach(), tangent)
