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


def _dropped(name, doc, call, ranks=()):
    """`ranks`: what x may have; of the lowest it is one sample."""
    def function(x, p=0.5, training=True, inplace=False):
        if not 0 <= p <= 1:
            raise _C.InvalidArgumentError(f"{name}: p must be in [0, 1], is {p}")
        if name == "dropout1d" and x.ndim not in ranks:
            raise _C.InvalidArgumentError(f"{name}: takes 2 or 3 dims, not {x.ndim}")
        single = len(ranks) > 0 and x.ndim == ranks[0]
        y = call(x.unsqueeze(0), p, training).squeeze(0) if single else call(x, p, training)
        return x.copy_(y) if inplace and training else y

    function.__name__, function.__doc__ = name, doc
    return function


dropout1d, dropout2d, dropout3d = (_dropped(f"dropout{n}d", f"dropout() of whole channels of x [N, C, ...] of {n} dims.", _C.feature_dropout, ranks)
                                   for n, ranks in ((1, (2, 3)), (2, ()), (3, (4, 5))))
alpha_dropout = _dropped("alpha_dropout", "dropout() that keeps mean and variance of what selu gives.", _C.alpha_dropout)
feature_alpha_dropout = _dropped("feature_alpha_dropout", "alpha_dropout() of whole channels.", _C.feature_alpha_dropout)


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """softmax of logits with Gumbel's noise over tau; hard: one-hot, with the gradient of the other."""
    noise = -_C.empty_like(logits).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    place = soft.max(dim, keepdim=True)[1]
    return _C.zeros_like(logits).scatter_(dim, place, 1.0) - soft.detach() + soft


def rrelu(x, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """leaky_relu() whose slope, in training, is drawn between the two for each element; else their mean."""
    if lower > upper:
        raise _C.InvalidArgumentError(f"rrelu: lower must not be above upper, are {lower} and {upper}")
    slope = _C.empty_like(x).uniform_(lower, upper) if training else (lower + upper) / 2
    y = _C.where(x > 0, x, x * slope)
    return x.copy_(y) if inplace else y


def triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"):
    """max(distance of anchor and positive - distance of anchor and negative + margin, 0), of a function of two tensors."""
    if margin <= 0:
        raise _C.InvalidArgumentError(f"triplet_margin_with_distance_loss: margin must be greater than 0, is {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise _C.InvalidArgumentError("triplet_margin_with_distance_loss: the tensors are expected to have the same number of dimensions")
    distance = pairwise_distance if distance_function is None else distance_function  # noqa: F405
    far = distance(anchor, negative)
    if swap:
        far = _C.minimum(far, distance(positive, negative))
    loss = _C.clamp(distance(anchor, positive) - far + margin, 0)
    if reduction not in ("none", "mean", "sum"):
        raise _C.InvalidArgumentError(f"triplet_margin_with_distance_loss: reduction must be none, mean or sum, is {reduction}")
    return loss if reduction == "none" else getattr(loss, reduction)()


def upsample(x, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """interpolate()."""
    return interpolate(x, size, scale_factor, mode, align_corners)  # noqa: F405


def upsample_nearest(x, size=None, scale_factor=None):
    """interpolate() to the nearest element."""
    return interpolate(x, size, scale_factor)  # noqa: F405


def upsample_bilinear(x, size=None, scale_factor=None):
    """interpolate() by lines, with corners that keep their places."""
    return interpolate(x, size, scale_factor, "bilinear", True)  # noqa: F405


def conv3d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """3-D convolution of x [N, C, D, H, W] with weight [O, C / groups, kd, kh, kw] and bias [O]; padding "same" keeps the size, "valid" is 0."""
    if padding == "same":
        steps, apart = ([v] * 3 if isinstance(v, int) else list(v) for v in (stride, dilation))
        if set(steps) != {1}:
            raise _C.InvalidArgumentError("conv3d: padding='same' is not supported for strided convolutions")
        reach = [d * (k - 1) for d, k in zip(apart, weight.shape[2:], strict=True)]
        x = _C.nn.functional.pad(x, [p for r in reversed(reach) for p in (r // 2, r - r // 2)])
    elif isinstance(padding, str) and padding != "valid":
        raise _C.InvalidArgumentError(f"conv3d: padding must be numbers, 'same' or 'valid', is {padding!r}")
    return _C.conv3d(x, weight, bias, stride, 0 if isinstance(padding, str) else padding, dilation, groups)


def max_pool3d(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """Largest element of each window of x [N, C, D, H, W], as max_pool2d(), and on demand their positions in the volume."""
    call = _C.max_pool3d_with_indices if return_indices else _C.max_pool3d
    return call(x, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode)


def _sized(function, n):
    """An adaptive pool, whose sizes may be None: those of the input."""
    def call(input, output_size, *arguments, **named):
        if isinstance(output_size, (tuple, list)) and None in output_size:
            output_size = [size if wanted is None else wanted for wanted, size in zip(output_size, input.shape[-n:], strict=True)]
        return function(input, output_size, *arguments, **named)

    call.__name__, call.__doc__ = function.__name__, function.__doc__
    return call


adaptive_avg_pool2d, adaptive_max_pool2d = _sized(_C.adaptive_avg_pool2d, 2), _sized(_C.adaptive_max_pool2d, 2)
adaptive_avg_pool3d, adaptive_max_pool3d = _sized(_C.adaptive_avg_pool3d, 3), _sized(_C.adaptive_max_pool3d, 3)
