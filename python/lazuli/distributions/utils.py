"""Helpers of several distributions: parameters broadcast to one shape, probabilities and their
logits, properties that are computed once."""

import functools
import math

from lazuli import _C
from lazuli._C import Tensor
from lazuli._tensor import tensor
from lazuli._types import finfo
from lazuli.autograd import inference_mode

__all__ = ["broadcast_all", "logits_to_probs", "clamp_probs", "probs_to_logits", "lazy_property",
           "tril_matrix_to_vec", "vec_to_tril_matrix"]

euler_constant = 0.57721566490153286060  # of Euler and Mascheroni


def is_number(x):
    """Whether it is a number of Python or NumPy, not a tensor."""
    if isinstance(x, Tensor):
        return False
    return isinstance(x, (int, float)) or hasattr(x, "dtype") and getattr(x, "shape", None) == ()


def broadcast_all(*values):
    """The values, tensors and numbers, as tensors of one shape.

    Numbers take the dtype and device of the first tensor, or the default dtype if there are only
    numbers. Raises ValueError for other values.
    """
    if not all(isinstance(v, Tensor) or is_number(v) for v in values):
        raise ValueError("Input arguments must all be instances of Number, "
                         "torch.Tensor or objects implementing __torch_function__.")
    first = next((v for v in values if isinstance(v, Tensor)), None)
    dtype = _C.get_default_dtype() if first is None else first.dtype
    device = None if first is None else first.device
    made = [v if isinstance(v, Tensor) else tensor(v, dtype=dtype, device=device) for v in values]
    return _C.broadcast_tensors(made)


def one_of_both(probs, logits):
    """(the name, the value) of the one that is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    return ("logits", logits) if probs is None else ("probs", probs)


def logits_to_probs(logits, is_binary=False):
    """The probabilities of logits: sigmoid(), or softmax() along the last dim."""
    return _C.sigmoid(logits) if is_binary else _C.softmax(logits, -1)


def clamp_probs(probs):
    """Probabilities kept away from 0 and 1 by the epsilon of their dtype, so that their logarithms
    are finite."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs, is_binary=False):
    """The logits of probabilities: their log odds, or their logarithms."""
    kept = clamp_probs(probs)
    return _C.log(kept) - _C.log1p(-kept) if is_binary else _C.log(kept)


class lazy_property:  # noqa: N801
    """A property that is computed when it is first read, with its history, and then kept in the
    object's attributes."""

    def __init__(self, wrapped):
        self.wrapped = wrapped
        functools.update_wrapper(self, wrapped)

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        with inference_mode(False):  # with its history, for calls outside of a mode
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def tril_matrix_to_vec(mat, diag=0):
    """The lower triangles of matrices [..., n, n], up to a diagonal, row by row as vectors."""
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = _C.tril_indices(n, n, diag).unbind(0)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec, diag=0):
    """Vectors as the lower triangles of square matrices, up to a diagonal: the inverse of
    tril_matrix_to_vec()."""
    # Solved for n: a triangle of n rows has n (n + 1) / 2 elements; each of the |diag| diagonals
    # adds or removes up to n.
    n = (-(1 + 2 * diag) + math.sqrt((1 + 2 * diag)**2 + 8 * vec.shape[-1]
                                     + 4 * abs(diag) * (diag + 1))) / 2
    if round(n) - n > finfo(vec.dtype).eps:
        raise ValueError(f"The size of last dimension is {vec.shape[-1]} which cannot be expressed "
                         "as the lower triangular part of a square D x D matrix.")
    n = round(n)
    rows, columns = _C.tril_indices(n, n, diag).unbind(0)
    made = vec.new_zeros((*vec.shape[:-1], n, n))
    return made.index_put((*(slice(None),) * (vec.ndim - 1), rows, columns), vec)


def sum_rightmost(value, count):
    """The sums over the last `count` dims."""
    return value if count == 0 else value.reshape((*value.shape[:value.ndim - count], -1)).sum(-1)


def standard_normal(shape, dtype, device):
    """Numbers of the standard normal distribution."""
    return _C.randn(tuple(shape), dtype=dtype, device=device)


def open_uniform(shape, dtype, device):
    """Uniform numbers in (0, 1), whose logarithms are finite."""
    return clamp_probs(_C.rand(tuple(shape), dtype=dtype, device=device))


def eps_of(x):
    """The epsilon of a tensor's dtype."""
    return finfo(x.dtype).eps


def tiny_of(x):
    """The least normal number of a tensor's dtype."""
    return finfo(x.dtype).tiny
