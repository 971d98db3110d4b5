"""Losses, and the functions of lazuli that networks use."""

import builtins
import inspect
import math
import sys
import warnings

from lazuli import _C, _tensor
from lazuli._C import *  # noqa: F403
from lazuli._C.nn import functional as _functional
from lazuli._C.nn.functional import *  # noqa: F403
from lazuli.autograd.grad_mode import no_grad


def _dim_of(name, input, dim, stacklevel):
    """The given dim, or the one that PyTorch guesses, with its warning."""
    if dim is not None:
        return dim
    warnings.warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to "
                  "include dim=X as an argument.", stacklevel=builtins.min(stacklevel, sys.maxsize))
    return 0 if input.ndim in (0, 1, 3) else 1


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """exp(input) divided by its sum along dim, computed without overflow. If a dtype is given, the
    input is converted to it first."""
    return _C.softmax(input, _dim_of("softmax", input, dim, _stacklevel), dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """log(softmax()), computed without overflow. If a dtype is given, the input is converted to it
    first."""
    return _C.log_softmax(input, _dim_of("log_softmax", input, dim, _stacklevel), dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """softmax() of the negated input."""
    return _C.softmin(input, _dim_of("softmin", input, dim, _stacklevel), dtype)


def _max_pool(n, of, place):
    pools = [getattr(_C, f"max_pool{n}d"), getattr(_C, f"max_pool{n}d_with_indices")]

    def pool(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
             return_indices=False):
        stride = () if stride is None and n == 3 else stride
        record = pools[1 if return_indices else 0]
        return record(input, kernel_size, stride, padding, dilation, ceil_mode)

    pool.__name__ = pool.__qualname__ = f"max_pool{n}d"
    pool.__doc__ = (f"The largest element of each window of {of}; with return_indices also its "
                    f"position in the {place}.")
    return pool


max_pool1d, max_pool2d, max_pool3d = (
    _max_pool(1, "[N, C, L]", "row"), _max_pool(2, "[N, C, H, W]", "image"),
    _max_pool(3, "[N, C, D, H, W]", "volume"))


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """target (log(target) - input), or 0 where the target is 0; "batchmean" is the sum divided by
    the size of the first dim."""
    if reduction == "batchmean":
        return _functional.kl_div(input, target, log_target, "sum") / (input.shape[0] if input.ndim
                                                                       else 1)
    return _functional.kl_div(input, target, log_target, reduction)


def dropout(input, p=0.5, training=True, inplace=False):
    """Each element is zeroed with probability p, and the others are multiplied by 1 / (1 - p);
    without training, the input itself."""
    if not 0 <= p <= 1:
        raise _C.InvalidArgumentError(f"dropout: p must be in [0, 1], is {p}")
    return _C.dropout(input, p, inplace=inplace) if training else input


def _dropped(name, doc, call, ranks=(), in_training=True):
    """A dropout function. `ranks` are the possible ranks of the input; the lowest is that of a
    single sample."""
    def function(input, p=0.5, training=in_training, inplace=False):
        if not 0 <= p <= 1:
            raise _C.InvalidArgumentError(f"{name}: p must be in [0, 1], is {p}")
        if name == "dropout1d" and input.ndim not in ranks:
            raise _C.InvalidArgumentError(f"{name}: takes 2 or 3 dims, not {input.ndim}")
        single = len(ranks) > 0 and input.ndim == ranks[0]
        y = call(input.unsqueeze(0), p, training).squeeze(0) if single else call(input, p, training)
        return input.copy_(y) if inplace and training else y

    function.__name__, function.__doc__ = name, doc
    return function


dropout1d, dropout2d, dropout3d = (
    _dropped(f"dropout{n}d", f"dropout() of whole channels of x [N, C, ...] of {n} dims.",
             _C.feature_dropout, ranks) for n, ranks in ((1, (2, 3)), (2, ()), (3, (4, 5))))
alpha_dropout = _dropped("alpha_dropout",
                         "dropout() that keeps mean and variance of what selu gives.",
                         _C.alpha_dropout, in_training=False)
feature_alpha_dropout = _dropped("feature_alpha_dropout", "alpha_dropout() of whole channels.",
                                 _C.feature_alpha_dropout, in_training=False)


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean",
             zero_infinity=False):
    lengths = [n if isinstance(n, _C.Tensor) else
               _tensor.tensor(list(n), dtype=_C.int64, device=log_probs.device)
               for n in (input_lengths, target_lengths)]
    return _functional.ctc_loss(log_probs, targets, *lengths, blank, reduction, zero_infinity)


ctc_loss.__doc__ = _functional.ctc_loss.__doc__ + "\n\nLengths may be rows of numbers."


def triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None,
                                      margin=1.0, swap=False, reduction="mean"):
    """max(distance(anchor, positive) - distance(anchor, negative) + margin, 0), with a function of
    two tensors as the distance."""
    if margin <= 0:
        raise _C.InvalidArgumentError(
            f"triplet_margin_with_distance_loss: margin must be greater than 0, is {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise _C.InvalidArgumentError("triplet_margin_with_distance_loss: the tensors are expected "
                                      "to have the same number of dimensions")
    distance = pairwise_distance if distance_function is None else distance_function  # noqa: F405
    far = distance(anchor, negative)
    if swap:
        far = _C.minimum(far, distance(positive, negative))
    loss = _C.clamp(distance(anchor, positive) - far + margin, 0)
    if reduction not in ("none", "mean", "sum"):
        raise _C.InvalidArgumentError("triplet_margin_with_distance_loss: reduction must be none, "
                                      f"mean or sum, is {reduction}")
    return loss if reduction == "none" else getattr(loss, reduction)()


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """interpolate()."""
    return interpolate(input, size, scale_factor, mode, align_corners)  # noqa: F405


def upsample_nearest(input, size=None, scale_factor=None):
    """interpolate() to the nearest element."""
    return interpolate(input, size, scale_factor)  # noqa: F405


def upsample_bilinear(input, size=None, scale_factor=None):
    """interpolate() with mode "bilinear" and align_corners."""
    return interpolate(input, size, scale_factor, "bilinear", True)  # noqa: F405


def conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """3-D convolution of x [N, C, D, H, W] with weight [O, C / groups, kd, kh, kw] and bias [O].
    Padding "same" keeps the size, "valid" is 0."""
    if padding == "same":
        steps, apart = ([v] * 3 if isinstance(v, int) else list(v) for v in (stride, dilation))
        if set(steps) != {1}:
            raise _C.InvalidArgumentError(
                "conv3d: padding='same' is not supported for strided convolutions")
        # conv3d() says what does not fit.
        reach = [d * (k - 1) for d, k in zip(apart, weight.shape[2:], strict=False)]
        input = _C.pad(input, [p for r in reversed(reach) for p in (r // 2, r - r // 2)])
    elif isinstance(padding, str) and padding != "valid":
        raise _C.InvalidArgumentError(
            f"conv3d: padding must be numbers, 'same' or 'valid', is {padding!r}")
    return _C.conv3d(input, weight, bias, stride, 0 if isinstance(padding, str) else padding,
                     dilation, groups)


def multi_head_attention_forward(query, key, value, embed_dim_to_check, num_heads, in_proj_weight,
                                 in_proj_bias, bias_k, bias_v, add_zero_attn, dropout_p,
                                 out_proj_weight, out_proj_bias, training=True,
                                 key_padding_mask=None, need_weights=True, attn_mask=None,
                                 use_separate_proj_weight=False, q_proj_weight=None,
                                 k_proj_weight=None, v_proj_weight=None, static_k=None,
                                 static_v=None, average_attn_weights=True, is_causal=False):
    """Attention of query [L, N, E] to key and value [S, N, E], or the same without N, with
    projections into heads and back. With need_weights, it also returns the weights, [N, L, S], or
    per head."""
    name = "multi_head_attention_forward"
    for what, size in {"embed_dim_to_check": embed_dim_to_check, "num_heads": num_heads}.items():
        if not isinstance(size, int):
            raise TypeError(f"{name}: {what} must be int, not {type(size).__name__}")
    if (query.ndim not in (2, 3) or query.shape[-1] != embed_dim_to_check or
            embed_dim_to_check % num_heads):
        raise _C.InvalidArgumentError(f"{name}: query {tuple(query.shape)} must have 2 or 3 dims, "
                                      f"the last of {embed_dim_to_check}, in {num_heads} heads")
    weights = ((q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight
               else in_proj_weight)
    return _attend(name, (query, key, value), num_heads, weights, in_proj_bias,
                   lambda y: linear(y, out_proj_weight, out_proj_bias),  # noqa: F405
                   bias_k, bias_v, add_zero_attn, dropout_p if training else 0.0, key_padding_mask,
                   need_weights, attn_mask, average_attn_weights, is_causal, (static_k, static_v))


def _attend(name, operands, num_heads, proj_weights, in_proj_bias, out_proj, bias_k, bias_v,
            add_zero_attn, dropout_p, key_padding_mask, need_weights, attn_mask,
            average_attn_weights, is_causal, static=(None, None), batch_first=False):
    """The computation of multi_head_attention_forward() and MultiheadAttention. `static`: a
    projected key and value [N * heads, S, E / heads] that replace those of the operands."""
    if is_causal and attn_mask is None:
        raise _C.InvalidArgumentError(f"{name}: need attn_mask if specifying the is_causal hint")
    single = operands[0].ndim == 2
    if single and key_padding_mask is not None:
        key_padding_mask = key_padding_mask.unsqueeze(0)
    if single or not batch_first:
        operands = [x.unsqueeze(0) if single else x.transpose(0, 1) for x in operands]
    if isinstance(proj_weights, _C.Tensor):  # of all three
        proj_weights = proj_weights.chunk(3)
    biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
    query, key, value = (linear(x, w, b)  # noqa: F405
                         for x, w, b in zip(operands, proj_weights, biases, strict=True))
    n, length, width = query.shape
    if bias_k is not None and bias_v is not None:
        key, value = (_C.cat([x, more.expand(n, 1, -1)], 1)
                      for x, more in ((key, bias_k), (value, bias_v)))
    heads = [x.reshape(n, x.shape[1], num_heads, width // num_heads).transpose(1, 2)
             if given is None else given.reshape(n, num_heads, -1, given.shape[-1])
             for x, given in zip((query, key, value), (None, *static), strict=True)]
    if add_zero_attn:
        heads[1:] = [_C.cat([x, _C.zeros_like(x[:, :, :1])], 2) for x in heads[1:]]
    mask = _added_mask(attn_mask, key_padding_mask, n, num_heads, query.dtype)
    more = heads[1].shape[2] - (0 if mask is None else mask.shape[-1])
    if mask is not None and more:
        mask = _C.pad(mask, (0, more))  # what was added is always seen
    weights = None
    if need_weights:
        fit = heads[0] / math.sqrt(heads[0].shape[-1]) @ heads[1].transpose(-2, -1)
        weights = dropout((fit if mask is None else fit + mask).softmax(-1), dropout_p)
        mixed = weights @ heads[2]
        weights = weights.mean(1) if average_attn_weights else weights
    else:
        mixed = _functional.scaled_dot_product_attention(*heads, mask, dropout_p)
    y = out_proj(mixed.transpose(1, 2).reshape(n, length, width))
    if single:
        return y.squeeze(0), None if weights is None else weights.squeeze(0)
    return (y if batch_first else y.transpose(0, 1)), weights


def _added_mask(attn_mask, key_padding_mask, n, num_heads, dtype):
    """The sum of both masks, which is added to the scores: [N or 1, heads or 1, L or 1, S]; None
    without masks."""
    total = None if attn_mask is None else _added(attn_mask, dtype)
    if total is not None and total.ndim == 3:
        total = total.reshape(n, num_heads, *total.shape[-2:])
    if key_padding_mask is not None:
        mask = _added(key_padding_mask, dtype)[:, None, None]
        total = mask if total is None else total + mask
    return total


def _added(mask, dtype):
    """The mask as numbers to add to the scores: a mask of bools becomes -infinity where it is
    true."""
    return (_C.zeros_like(mask, dtype=dtype).masked_fill(mask, -math.inf)
            if mask.dtype == _C.bool else mask.to(dtype))


def _sized(function, n):
    """An adaptive pool whose sizes may be None, which means those of the input."""
    def call(input, output_size, *arguments, **named):
        if isinstance(output_size, (tuple, list)) and None in output_size:
            output_size = [size if wanted is None else wanted
                           for wanted, size in zip(output_size, input.shape[-n:], strict=True)]
        return function(input, output_size, *arguments, **named)

    call.__name__, call.__doc__ = function.__name__, function.__doc__
    return call


adaptive_avg_pool2d, adaptive_max_pool2d = (_sized(_C.adaptive_avg_pool2d, 2),
                                            _sized(_C.adaptive_max_pool2d, 2))
adaptive_avg_pool3d, adaptive_max_pool3d = (_sized(_C.adaptive_avg_pool3d, 3),
                                            _sized(_C.adaptive_max_pool3d, 3))


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0,
              scale_grad_by_freq=False, sparse=False):
    """The rows of weight [n, d] at the indices: [...] to [..., d]. The row padding_idx gets no
    gradient.

    With max_norm, the used rows are first scaled in place to a norm of at most max_norm. With
    scale_grad_by_freq, the gradient of a row is divided by the number of its uses. `sparse` has no
    effect.
    """
    if max_norm is not None:
        _limit_rows(weight, input, max_norm, norm_type)
    rows = _functional.embedding(input, weight, padding_idx)
    if scale_grad_by_freq and rows.requires_grad:
        made = {"dtype": weight.dtype, "device": weight.device}
        counts = _C.zeros(weight.shape[0], **made).index_add_(
            0, input.flatten(), _C.ones(input.numel(), **made))
        rows.register_hook(lambda gradient: gradient / counts[input].unsqueeze(-1))
    return rows


def embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2.0,
                  scale_grad_by_freq=False, mode="mean", sparse=False, per_sample_weights=None,
                  include_last_offset=False, padding_idx=None):
    """The "sum", "mean" or "max" of rows of weight [n, d] for each bag of indices: a row of input
    [B, m], or those of input [m] from one offset [B] to the next.

    With max_norm the rows that are used are first scaled, in place, to a norm of at most that.
    """
    if max_norm is not None:
        _limit_rows(weight, input, max_norm, norm_type)
    return _functional.embedding_bag(input, weight, offsets, None, norm_type, scale_grad_by_freq,
                                     mode, sparse, per_sample_weights, include_last_offset,
                                     padding_idx)


def _limit_rows(weight, indices, max_norm, norm_type):
    with no_grad():
        rows = indices.flatten()
        weight.index_copy_(0, rows, weight.detach()[rows].renorm(norm_type, 0, max_norm))


def _reduced(losses, reduction, count):
    """Losses by the name of a reduction; `count` is what their sum is divided by for a mean."""
    if reduction not in ("none", "mean", "sum"):
        raise _C.InvalidArgumentError(f"{reduction} is not a valid value for reduction")
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else losses.sum() / count(losses)


def _with_weight(name, of_weights):
    """A loss of two tensors with a weight for each element; of_weights: its mean is over the sum of
    the weights, not over their number."""
    function = getattr(_functional, name)

    def loss(input, target, *arguments, weight=None, **named):
        if weight is None:
            return function(input, target, *arguments, **named)
        reduction = named.pop("reduction", "mean")
        if arguments and isinstance(arguments[-1], str):
            *arguments, reduction = arguments
        single = function(input, target, *arguments, reduction="none", **named)
        if not isinstance(weight, _C.Tensor) or weight.shape != single.shape:
            raise _C.InvalidArgumentError("Inputs and weights must have the same size.")
        return _reduced(single * weight, reduction,
                        lambda losses: weight.sum() if of_weights else losses.numel())

    loss.__name__ = name
    loss.__doc__ = f"{function.__doc__}\n\nweight: a factor of each element's loss."
    signature = inspect.signature(function)
    weighted = inspect.Parameter("weight", inspect.Parameter.KEYWORD_ONLY, default=None)
    loss.__signature__ = signature.replace(parameters=[*signature.parameters.values(), weighted])
    return loss


mse_loss, l1_loss = _with_weight("mse_loss", True), _with_weight("l1_loss", True)
huber_loss = _with_weight("huber_loss", False)


def linear_cross_entropy(input, linear_weight, target, *, linear_bias=None, weight=None,
                         reduction="mean", ignore_index=None, label_smoothing=0.0, options=None):
    """cross_entropy() of linear(input, linear_weight, linear_bias): input [..., d], and a weight
    [classes, d], or [classes, d_1, ..., d] for targets of more dims.

    `options` choose chunks in PyTorch and say nothing here.
    """
    classes, shape = linear_weight.shape[0], tuple(linear_weight.shape[1:-1])
    rows = linear_weight.reshape(-1, linear_weight.shape[-1])
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    if bias is not None and bias.numel() != rows.shape[0]:  # one for each class
        bias = linear_bias.reshape(classes, *(1,) * len(shape)).expand(
            (classes, *shape)).reshape(-1)
    logits = _C.linear(input, rows, bias)
    if shape:
        logits = logits.reshape((*input.shape[:-1], classes, *shape))
    return _functional.cross_entropy(
        logits, target, weight=weight, reduction=reduction, label_smoothing=label_smoothing,
        ignore_index=-100 if ignore_index is None else ignore_index)


def grouped_mm(mat_a, mat_b, *, offs=None, bias=None, out_dtype=None):
    """Products of groups of matrices. Two of three dims are a batch; a matrix is cut into groups,
    whose ends `offs` [groups] says: rows of mat_a [n, k] for mat_b [groups, k, m], columns of mat_b
    for mat_a [groups, n, k], or, of two matrices, the dim that is summed over.

    Rows and columns behind the last end are 0.
    """
    if mat_a.ndim not in (2, 3) or mat_b.ndim not in (2, 3):
        raise _C.InvalidArgumentError("grouped_mm: mat_a and mat_b have to be 2 or 3 dimensional, "
                                      f"are {mat_a.ndim} and {mat_b.ndim}")
    if (offs is None) != (mat_a.ndim == mat_b.ndim == 3):
        raise _C.InvalidArgumentError("grouped_mm: Have to provide offsets if there is a 2d "
                                      "matrix, or no offset if both matrices are 3d")
    made = _of_groups(mat_a, mat_b, offs)
    made = made if bias is None else made + bias
    return made if out_dtype is None else made.to(out_dtype)


def _of_groups(a, b, ends):
    if ends is None:
        return a @ b
    jagged = a.shape[-1] if a.ndim == b.ndim else a.shape[0] if a.ndim == 2 else b.shape[-1]
    begins = _C.cat([ends.new_zeros(1), ends[:-1]])
    place = _C.arange(jagged, dtype=ends.dtype, device=ends.device)
    mask = (begins[:, None] <= place) & (place < ends[:, None])  # [groups, jagged]
    zero = a.new_zeros(())
    if a.ndim == b.ndim:
        return _C.where(mask[:, None, :], a, zero) @ b
    if a.ndim == 2:
        return (_C.where(mask[:, :, None], a, zero) @ b).sum(0)
    return (a @ _C.where(mask[:, None, :], b, zero)).sum(0)


# In place: x.relu_() and others as functions.
globals().update({_name: getattr(_C.Tensor, _name) for _name in (
    "celu_", "elu_", "hardtanh_", "leaky_relu_", "relu_", "rrelu_", "selu_", "threshold_")})
