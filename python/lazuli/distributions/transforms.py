"""Invertible functions with the logarithms of their Jacobian determinants.

A transform may keep its last argument and result (cache_size=1), so that the inverse of a result
costs nothing and has no rounding error.
"""

import functools
import math
import operator

from lazuli import _C, linalg
from lazuli._C import Size, Tensor
from lazuli._names import broadcast_shapes
from lazuli.distributions import constraints
from lazuli.distributions._transform import (_check_rank, _of_dims, ComposeTransform,
                                              IndependentTransform, ReshapeTransform, Transform,
                                              identity_transform)
from lazuli.distributions.utils import (broadcast_all, eps_of, is_number, lazy_property,
                                        sum_rightmost, tiny_of, tril_matrix_to_vec,
                                        vec_to_tril_matrix)
from lazuli.nn import functional as F  # noqa: N812

__all__ = ["AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform",
           "CorrCholeskyTransform", "CumulativeDistributionTransform", "ExpTransform",
           "IndependentTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform",
           "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftplusTransform",
           "TanhTransform", "SoftmaxTransform", "StackTransform", "StickBreakingTransform",
           "Transform", "identity_transform"]


class _Elementwise(Transform):
    """A rising bijection of numbers; two of one class are equal."""

    domain = constraints.real
    codomain = constraints.real
    bijective = True
    sign = +1

    def __eq__(self, other):
        return type(other) is type(self)

    __hash__ = None


class ExpTransform(_Elementwise):
    """exp(x)."""

    codomain = constraints.positive

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y):
        return x


class PowerTransform(Transform):
    """x^exponent of positive numbers."""

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.exponent, = broadcast_all(exponent)

    def with_cache(self, cache_size=1):
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size)

    @lazy_property
    def sign(self):
        return self.exponent.sign()

    def __eq__(self, other):
        return isinstance(other, PowerTransform) and self.exponent.eq(other.exponent).all().item()

    __hash__ = None

    def _call(self, x):
        return x.pow(self.exponent)

    def _inverse(self, y):
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape):
        return _stretched(shape, self.exponent)

    inverse_shape = forward_shape


def _stretched(shape, *parameters):
    return Size(broadcast_shapes(tuple(shape), *(tuple(getattr(p, "shape", ()))
                                                 for p in parameters)))


class SigmoidTransform(_Elementwise):
    """sigmoid(x), and logit(y) with y kept from 0 and 1."""

    codomain = constraints.unit_interval

    def _call(self, x):
        return _C.sigmoid(x).clamp(min=tiny_of(x), max=1 - eps_of(x))

    def _inverse(self, y):
        y = y.clamp(min=tiny_of(y), max=1 - eps_of(y))
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x, y):
        return -F.softplus(-x) - F.softplus(x)


class SoftplusTransform(_Elementwise):
    """log(1 + exp(x))."""

    codomain = constraints.positive

    def _call(self, x):
        return F.softplus(x)

    def _inverse(self, y):
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x, y):
        return -F.softplus(-x)


class TanhTransform(_Elementwise):
    """tanh(x)."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return _C.atanh(y)

    def log_abs_det_jacobian(self, x, y):
        # log(1 - tanh(x)^2) = 2 (log 2 - x - log(1 + exp(-2 x))), which loses no digits.
        return 2.0 * (math.log(2.0) - x - F.softplus(-2.0 * x))


class AbsTransform(Transform):
    """|x|. The inverse returns the positive one of the two numbers."""

    domain = constraints.real
    codomain = constraints.positive

    def __eq__(self, other):
        return isinstance(other, AbsTransform)

    __hash__ = None

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


class AffineTransform(Transform):
    """loc + scale x. The last event_dim dims are one value."""

    bijective = True

    def __init__(self, loc, scale, event_dim=0, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self):
        return self._event_dim

    @property
    def domain(self):
        return _of_dims(constraints.real, self.event_dim)

    @property
    def codomain(self):
        return _of_dims(constraints.real, self.event_dim)

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self.event_dim, cache_size)

    def __eq__(self, other):
        return (isinstance(other, AffineTransform) and _same(self.loc, other.loc)
                and _same(self.scale, other.scale))

    __hash__ = None

    @property
    def sign(self):
        if is_number(self.scale):
            return 1 if self.scale > 0 else -1 if self.scale < 0 else 0
        return self.scale.sign()

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        if is_number(self.scale):
            slope = _C.full_like(x, math.log(abs(self.scale)))
        else:
            slope = _C.log(_C.abs(self.scale))
        shape = tuple(x.shape)
        if self.event_dim:
            slope = slope.reshape((*slope.shape[:slope.ndim - self.event_dim], -1)).sum(-1)
            shape = shape[:len(shape) - self.event_dim]
        return slope.expand(shape)

    def forward_shape(self, shape):
        return _stretched(shape, self.loc, self.scale)

    inverse_shape = forward_shape


def _same(one, other):
    """Whether two parameters, numbers or tensors, are equal."""
    equal = one == other
    return equal.all().item() if isinstance(equal, Tensor) else equal


class CorrCholeskyTransform(Transform):
    """Vectors of n (n - 1) / 2 numbers to the Cholesky factors of correlation matrices [n, n].

    The numbers are mapped to (-1, 1), where they are partial correlations (Lewandowski, Kurowicka
    and Joe, 2009): each takes its part of what its row has left to the length of 1.
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x):
        x = x.tanh()
        eps = eps_of(x)
        r = vec_to_tril_matrix(x.clamp(min=-1 + eps, max=1 - eps), diag=-1)
        # What is left of each row's length behind each element.
        left = (1 - r.square()).sqrt().cumprod(-1)
        r = r + _C.eye(r.shape[-1], dtype=r.dtype, device=r.device)
        return r * F.pad(left[..., :-1], (1, 0), value=1)

    def _inverse(self, y):
        left = 1 - (y * y).cumsum(-1)
        before = F.pad(left[..., :-1], (1, 0), value=1)
        entries = tril_matrix_to_vec(y, diag=-1)
        root = tril_matrix_to_vec(before, diag=-1).sqrt()
        t = entries / root
        return (t.log1p() - t.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x, y, intermediates=None):
        left = 1 - (y * y).cumsum(-1)
        of_row = tril_matrix_to_vec(left, diag=-2)
        row_part = 0.5 * of_row.log().sum(-1)
        slope = -2 * (x + F.softplus(-2 * x) - math.log(2.0)).sum(-1)
        return row_part + slope

    def forward_shape(self, shape):
        _check_rank(len(shape), 1)
        count = shape[-1]
        n = round((0.25 + 2 * count)**0.5 + 0.5)
        if n * (n - 1) // 2 != count:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return Size((*shape[:-1], n, n))

    def inverse_shape(self, shape):
        _check_square(shape)
        n = shape[-1]
        return Size((*shape[:-2], n * (n - 1) // 2))


def _check_square(shape):
    _check_rank(len(shape), 2)
    if shape[-2] != shape[-1]:
        raise ValueError("Input is not square")


class SoftmaxTransform(Transform):
    """softmax along the last dim, which is not a bijection: the inverse is log()."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def __eq__(self, other):
        return isinstance(other, SoftmaxTransform)

    __hash__ = None

    def _call(self, x):
        weights = (x - x.amax(-1, True)).exp()
        return weights / weights.sum(-1, True)

    def _inverse(self, y):
        return y.log()

    def forward_shape(self, shape):
        _check_rank(len(shape), 1)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """Vectors of n numbers to the simplex of n + 1: each takes a share of what is left."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def __eq__(self, other):
        return isinstance(other, StickBreakingTransform)

    __hash__ = None

    def _offset(self, x):
        """Is subtracted so that zeros become the middle of the simplex."""
        n = x.shape[-1]
        return _C.arange(n, 0, -1, dtype=x.dtype, device=x.device).log()

    def _call(self, x):
        share = _C.sigmoid(x - self._offset(x)).clamp(min=tiny_of(x), max=1 - eps_of(x))
        left = (1 - share).cumprod(-1)
        return F.pad(share, (0, 1), value=1) * F.pad(left, (1, 0), value=1)

    def _inverse(self, y):
        taken = y[..., :-1]
        left = (1 - taken.cumsum(-1)).clamp(min=tiny_of(y))
        return taken.log() - left.log() + self._offset(taken)

    def log_abs_det_jacobian(self, x, y):
        shifted = x - self._offset(x)
        return (F.logsigmoid(shifted) - shifted + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape):
        _check_rank(len(shape), 1)
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape):
        _check_rank(len(shape), 1)
        return Size((*shape[:-1], shape[-1] - 1))


class LowerCholeskyTransform(Transform):
    """Square matrices to lower triangular ones whose diagonal is exp() of the given one."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def __eq__(self, other):
        return isinstance(other, LowerCholeskyTransform)

    __hash__ = None

    def _call(self, x):
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y):
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """Square matrices to positive-definite ones."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def __eq__(self, other):
        return isinstance(other, PositiveDefiniteTransform)

    __hash__ = None

    def _call(self, x):
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y):
        return LowerCholeskyTransform().inv(linalg.cholesky(y))


class _Joined(Transform):
    """The base of CatTransform and StackTransform: transforms of parts along a dim.

    _parts(x) takes x apart along the dim, _join(parts) puts parts together.
    """

    def __init__(self, tseq, dim, cache_size):
        assert all(isinstance(t, Transform) for t in tseq)
        if cache_size:
            tseq = [t.with_cache(cache_size) for t in tseq]
        super().__init__(cache_size=cache_size)
        self.transforms, self.dim = list(tseq), dim

    @property
    def bijective(self):
        return all(t.bijective for t in self.transforms)

    def _call(self, x):
        return self._join([t(part) for t, part in zip(self.transforms, self._parts(x),
                                                      strict=True)])

    def _inverse(self, y):
        return self._join([t.inv(part) for t, part in zip(self.transforms, self._parts(y),
                                                          strict=True)])


class CatTransform(_Joined):
    """One transform per piece of these lengths along a dim."""

    def __init__(self, tseq, dim=0, lengths=None, cache_size=0):
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        assert len(self.lengths) == len(self.transforms)

    @lazy_property
    def event_dim(self):
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self):
        return sum(self.lengths)

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, x):
        assert -x.ndim <= self.dim < x.ndim and x.shape[self.dim] == self.length
        return x.split(self.lengths, self.dim)

    def _join(self, parts):
        return _C.cat(parts, self.dim)

    def log_abs_det_jacobian(self, x, y):
        slopes = []
        for t, before, after in zip(self.transforms, self._parts(x), self._parts(y), strict=True):
            slope = t.log_abs_det_jacobian(before, after)
            slopes.append(sum_rightmost(slope, self.event_dim - t.event_dim))
        dim = self.dim - x.ndim if self.dim >= 0 else self.dim
        dim += self.event_dim
        if dim < 0:
            return _C.cat(slopes, dim)
        return functools.reduce(operator.add, slopes)

    @property
    def domain(self):
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @property
    def codomain(self):
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_Joined):
    """One transform per slice along a dim."""

    def __init__(self, tseq, dim=0, cache_size=0):
        super().__init__(tseq, dim, cache_size)

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return StackTransform(self.transforms, self.dim, cache_size)

    def _parts(self, x):
        assert -x.ndim <= self.dim < x.ndim and x.shape[self.dim] == len(self.transforms)
        return x.unbind(self.dim)

    def _join(self, parts):
        return _C.stack(parts, self.dim)

    def log_abs_det_jacobian(self, x, y):
        return self._join([t.log_abs_det_jacobian(before, after)
                           for t, before, after in zip(self.transforms, self._parts(x),
                                                       self._parts(y), strict=True)])

    @property
    def domain(self):
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @property
    def codomain(self):
        return constraints.stack([t.codomain for t in self.transforms], self.dim)


class CumulativeDistributionTransform(Transform):
    """The probability of being at most x in a distribution of numbers."""

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self):
        return self.distribution.support

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size)

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y):
        return self.distribution.log_prob(x)
