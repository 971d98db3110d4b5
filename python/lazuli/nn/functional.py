"""Losses, and the functions of lazuli that networks use."""

from lazuli import _C
from lazuli._C import *  # noqa: F403
from lazuli._C.nn import functional as _functional
from lazuli._C.nn.functional import *  # noqa: F403


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The largest element of each window of [N, C, L]; with return_indices also where in its row each stands."""
    pool = _C.max_pool1d_with_indices if return_indices else _C.max_pool1d
    return pool(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The largest element of each window of [N, C, H, W]; with return_indices also where in its image each stands."""
    pool = _C.max_pool2d_with_indices if return_indices else _C.max_pool2d
    return pool(input, kernel_size, stride, padding, dilation, ceil_mode)


def adaptive_avg_pool2d(input, output_size):
    """Means of windows of [N, C, H, W] that give this height and width; None keeps the input's."""
    if isinstance(output_size, (tuple, list)) and None in output_size:
        output_size = [n if size is None else size for size, n in zip(output_size, input.shape[-2:], strict=True)]
    return _C.adaptive_avg_pool2d(input, output_size)


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """target (log(target) - input), 0 where the target is 0; "batchmean" is the sum divided by the first dim."""
    if reduction == "batchmean":
        return _functional.kl_div(input, target, log_target, "sum") / (input.shape[0] if input.ndim else 1)
    return _functional.kl_div(input, target, log_target, reduction)


def dropout(x, p=0.5, training=True, inplace=False):
    """Each element zeroed with probability p, the rest scaled by 1 / (1 - p); x itself unless training."""
    if not 0 <= p <= 1:
        raise _C.InvalidArgumentError(f"dropout: p must be in [0, 1], is {p}")
    return _C.dropout(x, p, inplace=inplace) if training else x
