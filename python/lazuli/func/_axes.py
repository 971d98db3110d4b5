"""Named axes of batches: what vmap(axis_name=...) calls its samples, and sums and others over them.

A batch with a name has one more argument, the number of each sample, which a function inside gets
by axis_index(). The functions over samples are ops of a tensor and that number, and only a batch
computes them: that of the axis finds the number batched, and any other leaves the op as it is.
"""

import threading
from contextlib import contextmanager

from lazuli import _C
from lazuli._C import Tensor
from lazuli._tree import tree_map
from lazuli.library import custom_op


class _Axes(threading.local):
    def __init__(self):
        self.named = ()  # (name, size, the sample's number) of the batches around, the inner last


_axes = _Axes()


@contextmanager
def axis(name, size, index):
    """A context in which a function runs for the samples of an axis."""
    before = _axes.named
    _axes.named = (*before, (name, size, index))
    try:
        yield
    finally:
        _axes.named = before


def _axis(what, name):
    """(size, number of the sample) of the innermost axis of this name."""
    for known, size, index in reversed(_axes.named):
        if known == name:
            return size, index
    there = ", ".join(repr(known) for known, *_ in _axes.named) or "none"
    raise NameError(f"{what}: there is no axis named {name!r} here (named axes: {there}); "
                    "vmap(..., axis_name=...) gives a batch a name")


@custom_op("lazuli::over_samples", mutates_args=())
def _over_samples(kind: str, x: Tensor, index: Tensor) -> Tensor:
    raise RuntimeError(f"{kind} over the samples of a batch outside of it")


@_over_samples.register_fake
def _(kind, x, index):
    return _C.empty_like(x)


@_over_samples.register_vmap
def _(info, in_dims, kind, x, index):
    _, of_x, of_index = in_dims
    if of_index is None:  # of an axis around this one
        return _over_samples(kind, x, index), 0
    x = x.expand(info.batch_size, *x.shape) if of_x is None else x
    if kind == "psum":
        return x.sum(0, dtype=x.dtype), None
    return (x.amax(0) if kind == "pmax" else x.amin(0)), None


def _keep(ctx, inputs, output):
    ctx.kind, _, index = inputs
    ctx.save_for_backward(index)


def _backward(ctx, cotangent):
    if ctx.kind != "psum":
        raise RuntimeError(f"{ctx.kind} has no derivative")
    index, = ctx.saved_tensors
    return None, _over_samples("psum", cotangent, index), None


_over_samples.register_autograd(_backward, setup_context=_keep)


def _names(axis_name):
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


def _over(what, x, axis_name):
    found = [_axis(what, name) for name in _names(axis_name)]

    def leaf(x):
        if not isinstance(x, Tensor):
            if not isinstance(x, (bool, int, float, complex)):
                raise TypeError(f"{what}: takes tensors and numbers, not {type(x).__name__}")
            for size, _ in found:
                x = x * size if what == "psum" else x
            return x
        if what == "psum" and x.dtype == _C.bool:
            x = x.long()
        for _, index in found:
            x = _over_samples(what, x, index)
        return x

    return tree_map(leaf, x)


def psum(x, axis_name):
    """The sum of a tree of tensors over the samples of vmap(..., axis_name=axis_name), or of
    several axes. Each sample gets it. A number is multiplied by the number of samples."""
    return _over("psum", x, axis_name)


def pmean(x, axis_name):
    """The mean of a tree of tensors over the samples of an axis, or of several, as psum()."""
    count = axis_size(axis_name, what="pmean")
    return tree_map(lambda total: total / count, _over("psum", x, axis_name))


def pmax(x, axis_name):
    """The largest elements of the samples of an axis, or of several, as psum(). It has no
    derivative."""
    return _over("pmax", x, axis_name)


def pmin(x, axis_name):
    """The smallest elements of the samples of an axis, or of several, as psum(). It has no
    derivative."""
    return _over("pmin", x, axis_name)


def axis_index(axis_name):
    """The number of the sample on an axis; on several axes, the last counts fastest."""
    number = None
    for name in _names(axis_name):
        size, index = _axis("axis_index", name)
        number = index if number is None else number * size + index
    return number


def axis_size(axis_name, *, what="axis_size"):
    """How many samples an axis has, or several axes together."""
    count = 1
    for name in _names(axis_name):
        count *= _axis(what, name)[0]
    return count
