"""Histograms in several dims."""

import builtins
from collections import namedtuple

from lazuli import _C

_Result = namedtuple("histogramdd", ["hist", "bin_edges"])


def _edges(name, x, bins, bounds):
    """The edges of each dim as tensors."""
    count = x.shape[-1]
    if isinstance(bins, int):
        bins = [bins] * count
    if len(bins) != count:
        raise _C.InvalidArgumentError(
            f"{name}: the number of elements in bins must be equal to the innermost dimension of "
            f"the input, {count}, is {len(bins)}")
    if all(isinstance(b, _C.Tensor) for b in bins):
        return list(bins)
    if bounds is not None and len(bounds) != 2 * count:
        raise _C.InvalidArgumentError(
            f"{name}: range should have 2 numbers for each of {count} dims, has {len(bounds)}")
    spans = [None if bounds is None else list(bounds[2 * i:2 * i + 2]) for i in range(count)]
    return [_C.histogram(x[..., i], b, range=() if s is None else s).bin_edges
            for i, (b, s) in enumerate(zip(bins, spans, strict=True))]


def histogramdd(input, bins, range=None, weight=None, density=False):  # noqa: A002
    """How many points, the rows of input [..., n], lie in each cell of a grid of n dims.

    `bins` is the number of equal parts of each dim, or a number for each, of `range` (low, high,
    low, high, ...) or from the least to the largest number; or tensors of edges, one a dim. A point
    counts its weight [...]; a density is what counts over the size of the cell and all that counts.
    Gives the counts and a tuple of edges.
    """
    if input.ndim < 2:
        raise _C.InvalidArgumentError(
            f"histogramdd: input tensor should have at least 2 dimensions, is {tuple(input.shape)}")
    edges = _edges("histogramdd", input, bins, range)
    points = input.detach().reshape(-1, input.shape[-1])
    if weight is not None and tuple(weight.shape) != tuple(input.shape[:-1]):
        raise _C.InvalidArgumentError(
            "histogramdd: if weight tensor is provided it should have the same shape as the input "
            f"tensor excluding its innermost dimension, {tuple(input.shape[:-1])}, not "
            f"{tuple(weight.shape)}")
    made = {"dtype": input.dtype, "device": input.device}
    counts = (_C.ones(len(points), **made) if weight is None
              else weight.detach().reshape(-1))
    place, size = 0, 1
    for i, edge in enumerate(edges):
        x, parts = points[:, i], len(edge) - 1
        counts = counts.where((x >= edge[0]) & (x <= edge[-1]), 0.0)
        place = place * parts + (_C.searchsorted(edge, x, right=True) - 1).clamp(0, parts - 1)
        size *= parts
    hist = _C.zeros(size, **made).index_add(0, place, counts).reshape(
        [len(edge) - 1 for edge in edges])
    if density:
        hist = hist / hist.sum()
        for i, edge in enumerate(edges):
            hist = hist / edge.diff().reshape([-1 if d == i else 1
                                               for d in builtins.range(len(edges))])
    return _Result(hist, tuple(edges))

