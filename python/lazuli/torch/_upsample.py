"""Upsampling by the nearest element and its gradients, without positions where each element is repeated as often: the gradient is a sum then."""

import numpy as np
import torch

import lazuli as lz

NAMES = [f"{name}{rank}d" for name in ("upsample_nearest", "_upsample_nearest_exact") for rank in (1, 2, 3)]


def undecomposed():
    """The functions that torch would make of positions."""
    return [getattr(torch.ops.aten, name).default for name in NAMES]


def _places(n, out, scale, exact):
    """Which of n elements each of `out` is, as PyTorch computes it, in f32."""
    step = np.float32(n / out if scale is None else 1 / scale)
    places = (np.arange(out, dtype=np.float32) + np.float32(0.5 if exact else 0)) * step
    return np.minimum(np.floor(places).astype(np.int64), n - 1)


def _along(x, dim, places):
    sizes, n = list(x.shape), x.shape[dim]
    times = len(places) // n
    if np.array_equal(places, np.repeat(np.arange(n), times)):
        repeated = lz.expand(x.unsqueeze(dim + 1), [*sizes[:dim + 1], times, *sizes[dim + 1:]])
        return repeated.reshape([*sizes[:dim], n * times, *sizes[dim + 1:]])
    return lz.index_select(x, dim, lz.tensor(places))


def nearest(exact):
    def row(x, sizes, *scales):
        first = x.ndim - len(sizes)
        for d, out in enumerate(sizes):
            x = _along(x, first + d, _places(x.shape[first + d], out, scales[d] if scales else None, exact))
        return x

    return row
