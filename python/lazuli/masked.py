"""Reductions and normalisations of the elements where a mask is true, as torch.masked has them.

A mask is of bools and stretches to the input; without one all elements count. Where none does, the
result is what the function gives of nothing: 0 of a sum, -infinity of a maximum, NaN of a mean.
"""

from lazuli import _C
from lazuli._types import iinfo

INFINITY = float("inf")


def _is_whole(x):
    return x.dtype in (_C.bool, _C.uint8, _C.int8, _C.int16, _C.int32, _C.int64)


def _dims(name, dim, x):
    """The dims as a list: all for None and ()."""
    if dim is None or dim == ():
        return list(range(x.ndim))
    rank, found = max(x.ndim, 1), []
    for d in (dim,) if isinstance(dim, int) else dim:
        if not -rank <= d < rank:
            raise _C.OutOfRangeError(f"masked.{name}: dim {d} is out of range for {x.ndim} dims")
        if d % rank in found:
            raise _C.InvalidArgumentError(f"masked.{name}: dim {d} is there twice")
        found.append(d % rank)
    return found


def _filled(name, x, mask, value):
    """x with the value where the mask is false."""
    if mask is None:
        return x
    if mask.dtype != _C.bool:
        raise _C.WrongTypeError(f"masked.{name}: a mask is of bools, not of {mask.dtype!r}")
    if mask.ndim > x.ndim:
        raise _C.OutOfRangeError(
            f"masked.{name}: a mask of {mask.ndim} dims is larger than an input of {x.ndim}")
    return x.masked_fill(~mask, value)


def _least(x):
    return -INFINITY if not _is_whole(x) else 0 if x.dtype == _C.bool else iinfo(x.dtype).min


def _largest(x):
    return INFINITY if not _is_whole(x) else 1 if x.dtype == _C.bool else iinfo(x.dtype).max


def _to(x, dtype):
    return x if dtype is None else x.to(dtype)


def sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The sum over dims."""
    dims = _dims("sum", dim, input)
    return _filled("sum", input, mask, 0).sum(dims if input.ndim else (), keepdim, dtype=dtype)


def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The product over dims."""
    dims = _dims("prod", dim, input)
    return _filled("prod", input, mask, 1).prod(dims if input.ndim else (), keepdim, dtype=dtype)


def cumsum(input, dim, *, dtype=None, mask=None):
    """Running sums along dim."""
    return _filled("cumsum", input, mask, 0).cumsum(dim,
                                                    dtype=input.dtype if dtype is None else dtype)


def cumprod(input, dim, *, dtype=None, mask=None):
    """Running products along dim."""
    return _filled("cumprod", input, mask, 1).cumprod(dim,
                                                      dtype=input.dtype if dtype is None else dtype)


def amax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The largest element over dims."""
    x = _to(input, dtype)
    dims = _dims("amax", dim, x)
    return _filled("amax", x, mask, _least(x)).amax(dims if x.ndim else (), keepdim)


def amin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The smallest element over dims."""
    x = _to(input, dtype)
    dims = _dims("amin", dim, x)
    return _filled("amin", x, mask, _largest(x)).amin(dims if x.ndim else (), keepdim)


def argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The position of the largest element along dim, or among all, in the dtype of the input."""
    x = _to(input, dtype)
    return _filled("argmax", x, mask, _least(x)).argmax(dim, keepdim).to(x.dtype)


def argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The position of the smallest element along dim, or among all, in the dtype of the input."""
    x = _to(input, dtype)
    return _filled("argmin", x, mask, _largest(x)).argmin(dim, keepdim).to(x.dtype)


def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The mean over dims."""
    x = _to(input, dtype)
    if x.dtype == _C.bool or (_is_whole(x) and dtype is not None):
        raise _C.WrongTypeError(f"masked.mean: takes floats, not {x.dtype!r}")
    count = sum(_C.ones_like(x, dtype=_C.int64), dim, keepdim=keepdim, mask=mask)
    return sum(x, dim, keepdim=keepdim, dtype=dtype, mask=mask) / count


def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """The middle element along dim, of two the lower."""
    x = _to(input, dtype)
    floats = _to(x, _C.float32) if _is_whole(x) else x
    found = _filled("median", floats, mask,
                    float("nan")).nanmedian(_dims("median", dim, x)[0], keepdim)[0]
    if not _is_whole(x):
        return found
    if found.isnan().any().item():
        raise _C.InvalidArgumentError(
            "masked.median: a row of integers without elements has no median")
    return found.to(x.dtype)


def logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """log of the sum of exp() over dims, without overflow."""
    x = _to(input, dtype)
    dims = _dims("logsumexp", dim, x)
    return _filled("logsumexp", x.float() if _is_whole(x) else x, mask,
                   -INFINITY).logsumexp(dims, keepdim).to(x.dtype)


def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    """log(exp(input) + exp(other)), without what the masks leave out."""
    return _C.logaddexp(_filled("logaddexp", _to(input, dtype), input_mask, -INFINITY),
                        _filled("logaddexp", _to(other, dtype), other_mask, -INFINITY))


def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The norm of an order over dims."""
    x = _to(input, dtype)
    order = 2.0 if ord is None else float(ord)
    dims = _dims("norm", dim, x)
    return _filled("norm", x, mask,
                   INFINITY if order == -INFINITY else 0).norm(order, dims, keepdim)


def _spread(name, input, dim, unbiased, correction, keepdim, dtype, mask):
    if unbiased is not None and correction is not None:
        raise _C.InvalidArgumentError(f"masked.{name}: takes correction or unbiased, not both")
    less = (1 if unbiased is None or unbiased else 0) if correction is None else correction
    x = _to(input, dtype)
    x = x.float() if _is_whole(x) else x
    count = sum(_C.ones_like(x, dtype=_C.int64), dim, keepdim=True, mask=mask)
    off = x - sum(x, dim, keepdim=True, mask=mask) / count
    total = sum(off * off.conj(), dim, keepdim=True, mask=mask)
    result = (total / (count - less).clamp(0)).to(total.dtype)
    return result if keepdim else result.squeeze(_dims(name, dim, x)) if x.ndim else result


def var(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """The variance over dims."""
    return _spread("var", input, dim, unbiased, correction, keepdim, dtype, mask)


def std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """The standard deviation over dims."""
    return _spread("std", input, dim, unbiased, correction, keepdim, dtype, mask).sqrt()


def softmax(input, dim, *, dtype=None, mask=None):
    """exp(x) over its sum along dim; 0 where the mask is false."""
    return _filled("softmax", _to(input, dtype), mask, -INFINITY).softmax(dim)


def log_softmax(input, dim, *, dtype=None, mask=None):
    """log(softmax()); -infinity where the mask is false."""
    return _filled("log_softmax", _to(input, dtype), mask, -INFINITY).log_softmax(dim)


def softmin(input, dim, *, dtype=None, mask=None):
    """softmax() of the negated input."""
    return _C.softmin(_filled("softmin", _to(input, dtype), mask, INFINITY), dim)


def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    """The input over its norm along dim, or over eps if that is less; 0 where the mask is false."""
    x = _to(input, dtype)
    return _filled("normalize", x, mask, 0) / norm(x, ord, dim, keepdim=True, mask=mask).clamp(eps)
