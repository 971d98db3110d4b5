"""Distributions of vectors and matrices by Cholesky factors: the multivariate normal, also with a
covariance of low rank; Wishart's; factors of correlation matrices."""

import math
import warnings

from lazuli import _C, linalg
from lazuli._names import broadcast_shapes
from lazuli.autograd import no_grad
from lazuli.distributions import constraints
from lazuli.distributions.distribution import Distribution, ExponentialFamily, Located
from lazuli.distributions.positive import Beta, Gamma
from lazuli.distributions.utils import lazy_property, standard_normal, tiny_of

__all__ = ["LKJCholesky", "LowRankMultivariateNormal", "MultivariateNormal", "Wishart"]


def triangular_solve(factor, x):
    """The y with factor y = x, for a lower triangular factor."""
    return linalg.solve_triangular(factor, x, upper=False)


def log_diagonal(factor):
    """Half of the log determinants of matrices, from their Cholesky factors."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def batch_mahalanobis(factor, x):
    """x^T M^-1 x for vectors x, where factor is the Cholesky factor of M; batches broadcast."""
    shape = broadcast_shapes(tuple(factor.shape[:-2]), tuple(x.shape[:-1]))
    n = x.shape[-1]
    column = x.unsqueeze(-1).expand((*shape, n, 1))
    return triangular_solve(factor.expand((*shape, n, n)), column).square().sum([-2, -1])


def precision_to_scale_tril(precision):
    """The Cholesky factor of the inverse of matrices."""
    # With rows and columns in reverse, the Cholesky factor of the matrix in reverse is an upper
    # triangular U with matrix = U U^T. The inverse of U^T is the factor of the inverse.
    turned = linalg.cholesky(precision.flip([-2, -1]))
    return triangular_solve(turned.flip([-2, -1]).mT, _eye(precision))


def _eye(like):
    return _C.eye(like.shape[-1], dtype=like.dtype,
                  device=like.device).expand(tuple(like.shape))


def _product(factor, x):
    """factor x for vectors x."""
    return (factor @ x.unsqueeze(-1)).squeeze(-1)


def _one_of(**given):
    if sum(v is not None for v in given.values()) != 1:
        names = list(given)
        raise ValueError(f"Exactly one of {', '.join(names[:-1])} or {names[-1]} may be "
                         "specified.")
    return next((name, v) for name, v in given.items() if v is not None)


class _ByMatrix(ExponentialFamily):
    """A distribution by a covariance matrix, its inverse, or its Cholesky factor."""

    def _set_factor(self, name, matrix):
        """Sets the Cholesky factor from the parameter with this name."""
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = linalg.cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = precision_to_scale_tril(matrix)

    def _expand_matrices(self, new, shape):
        self._expand_into(new, shape, ("covariance_matrix", "scale_tril", "precision_matrix"))
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril

    def _matrix_shape(self):
        n = self._event_shape[-1]
        return (*self._batch_shape, n, n)

    @lazy_property
    def scale_tril(self):
        """The lower Cholesky factor."""
        return self._unbroadcasted_scale_tril.expand(self._matrix_shape())

    @lazy_property
    def covariance_matrix(self):
        """The product of the factor with its transpose."""
        factor = self._unbroadcasted_scale_tril
        return (factor @ factor.mT).expand(self._matrix_shape())

    @lazy_property
    def precision_matrix(self):
        """The inverse of the covariance matrix."""
        inverse = triangular_solve(self._unbroadcasted_scale_tril,
                                   _eye(self._unbroadcasted_scale_tril))
        return (inverse.mT @ inverse).expand(self._matrix_shape())


class MultivariateNormal(Located, _ByMatrix):
    """Normal vectors by their mean and by their covariance matrix, its inverse, or its Cholesky
    factor."""

    arg_constraints = {"loc": constraints.real_vector,
                       "covariance_matrix": constraints.positive_definite,
                       "precision_matrix": constraints.positive_definite,
                       "scale_tril": constraints.lower_cholesky}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None,
                 validate_args=None):
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = _one_of(covariance_matrix=covariance_matrix,
                               precision_matrix=precision_matrix, scale_tril=scale_tril)
        if matrix.ndim < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading "
                             "batch dimensions")
        batch = broadcast_shapes(tuple(matrix.shape[:-2]), tuple(loc.shape[:-1]))
        self.loc = loc.expand((*batch, loc.shape[-1]))
        matrix = matrix.expand((*batch, *matrix.shape[-2:]))
        setattr(self, name, matrix)
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        self._set_factor(name, matrix)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(MultivariateNormal, _instance)
        new.loc = self.loc.expand((*batch_shape, *self.event_shape))
        self._expand_matrices(new, (*batch_shape, *self.event_shape, *self.event_shape))
        return self._finished(MultivariateNormal, new, batch_shape)

    @property
    def variance(self):
        return self._unbroadcasted_scale_tril.square().sum(-1).expand(
            (*self._batch_shape, *self._event_shape))

    def rsample(self, sample_shape=()):
        z = standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + _product(self._unbroadcasted_scale_tril, z)

    def log_prob(self, value):
        self._checked(value)
        factor = self._unbroadcasted_scale_tril
        distance = batch_mahalanobis(factor, value - self.loc)
        n = self._event_shape[0]
        return -0.5 * (n * math.log(2 * math.pi) + distance) - log_diagonal(factor)

    def entropy(self):
        n = self._event_shape[0]
        value = (0.5 * n * (1 + math.log(2 * math.pi))
                 + log_diagonal(self._unbroadcasted_scale_tril))
        return value.expand(tuple(self._batch_shape))


class LowRankMultivariateNormal(Located):
    """Normal vectors with the covariance cov_factor cov_factor^T + diag(cov_diag), where cov_factor
    [..., n, rank] has few columns. By Woodbury's lemma only a matrix [rank, rank] is factored."""

    arg_constraints = {"loc": constraints.real_vector,
                       "cov_factor": constraints.independent(constraints.real, 2),
                       "cov_diag": constraints.independent(constraints.positive, 1)}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None):
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        n = loc.shape[-1]
        if cov_factor.ndim < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading "
                             "batch dimensions")
        if cov_factor.shape[-2] != n:
            raise ValueError("cov_factor must be a batch of matrices with shape "
                             f"{n} x m")
        if cov_diag.shape[-1] != n:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {(n,)}")
        try:
            batch = broadcast_shapes(tuple(loc.shape[:-1]), tuple(cov_factor.shape[:-2]),
                                     tuple(cov_diag.shape[:-1]))
        except RuntimeError as error:
            raise ValueError("Incompatible batch shapes: loc "
                             f"{tuple(loc.shape)}, cov_factor {tuple(cov_factor.shape)}, "
                             f"cov_diag {tuple(cov_diag.shape)}") from error
        self.loc = loc.expand((*batch, n))
        self.cov_diag = cov_diag.expand((*batch, n))
        self.cov_factor = cov_factor.expand((*batch, *cov_factor.shape[-2:]))
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        self._capacitance_tril = _capacitance(cov_factor, cov_diag)
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(LowRankMultivariateNormal, _instance)
        shape = (*batch_shape, *self.event_shape)
        new.loc, new.cov_diag = self.loc.expand(shape), self.cov_diag.expand(shape)
        new.cov_factor = self.cov_factor.expand((*shape, self.cov_factor.shape[-1]))
        for name in ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril"):
            setattr(new, name, getattr(self, name))
        return self._finished(LowRankMultivariateNormal, new, batch_shape)

    @lazy_property
    def variance(self):
        value = self._unbroadcasted_cov_factor.square().sum(-1) + self._unbroadcasted_cov_diag
        return value.expand((*self._batch_shape, *self._event_shape))

    def _square_shape(self):
        return (*self._batch_shape, *self._event_shape, *self._event_shape)

    @lazy_property
    def scale_tril(self):
        """The lower Cholesky factor of the covariance."""
        # sqrt(D) L, where L is the factor of D^-1/2 W W^T D^-1/2 + I.
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        inner = scaled @ scaled.mT
        factor = linalg.cholesky(inner + _eye(inner))
        return (root * factor).expand(self._square_shape())

    @lazy_property
    def covariance_matrix(self):
        """The covariance matrix."""
        factor = self._unbroadcasted_cov_factor
        matrix = factor @ factor.mT + self._unbroadcasted_cov_diag.diag_embed()
        return matrix.expand(self._square_shape())

    @lazy_property
    def precision_matrix(self):
        """The inverse of the covariance matrix."""
        inverse = self._unbroadcasted_cov_diag.reciprocal()
        scaled = self._unbroadcasted_cov_factor.mT * inverse.unsqueeze(-2)
        part = triangular_solve(self._capacitance_tril, scaled)
        return (inverse.diag_embed() - part.mT @ part).expand(self._square_shape())

    def rsample(self, sample_shape=()):
        shape = tuple(self._extended_shape(sample_shape))
        rank = self.cov_factor.shape[-1]
        few = standard_normal((*shape[:-1], rank), self.loc.dtype, self.loc.device)
        many = standard_normal(shape, self.loc.dtype, self.loc.device)
        return (self.loc + _product(self._unbroadcasted_cov_factor, few)
                + self._unbroadcasted_cov_diag.sqrt() * many)

    def log_prob(self, value):
        self._checked(value)
        distance = low_rank_mahalanobis(self._unbroadcasted_cov_factor,
                                        self._unbroadcasted_cov_diag, value - self.loc,
                                        self._capacitance_tril)
        n = self._event_shape[0]
        return -0.5 * (n * math.log(2 * math.pi) + self._log_det() + distance)

    def _log_det(self):
        return low_rank_log_det(self._unbroadcasted_cov_diag, self._capacitance_tril)

    def entropy(self):
        n = self._event_shape[0]
        value = 0.5 * (n * (1 + math.log(2 * math.pi)) + self._log_det())
        return value.expand(tuple(self._batch_shape))


def _capacitance(factor, diagonal):
    """The Cholesky factor of I + W^T D^-1 W."""
    inner = (factor.mT / diagonal.unsqueeze(-2)) @ factor
    return linalg.cholesky(inner + _eye(inner))


def low_rank_log_det(diagonal, capacitance_tril):
    """log det(W W^T + D)."""
    return 2 * log_diagonal(capacitance_tril) + diagonal.log().sum(-1)


def low_rank_mahalanobis(factor, diagonal, x, capacitance_tril):
    """x^T (W W^T + D)^-1 x."""
    scaled = _product(factor.mT / diagonal.unsqueeze(-2), x)
    return (x.square() / diagonal).sum(-1) - batch_mahalanobis(capacitance_tril, scaled)


class Wishart(_ByMatrix):
    """Wishart's distribution of positive-definite matrices, with df degrees of freedom and a scale
    matrix, by Bartlett's decomposition."""

    arg_constraints = {"covariance_matrix": constraints.positive_definite,
                       "precision_matrix": constraints.positive_definite,
                       "scale_tril": constraints.lower_cholesky,
                       "df": constraints.greater_than(0)}
    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None,
                 validate_args=None):
        name, matrix = _one_of(covariance_matrix=covariance_matrix,
                               precision_matrix=precision_matrix, scale_tril=scale_tril)
        if matrix.ndim < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading "
                             "batch dimensions")
        n = matrix.shape[-1]
        number = df if isinstance(df, (int, float)) else None
        df = _C.full((), df, dtype=matrix.dtype, device=matrix.device) if number is not None else df
        if number is not None and not number > n - 1:
            raise ValueError(f"Value of df={number} expected to be greater than ndim - 1 = "
                             f"{n - 1}.")
        batch = broadcast_shapes(tuple(matrix.shape[:-2]), tuple(df.shape))
        self.df = df.expand(batch)
        matrix = matrix.expand((*batch, *matrix.shape[-2:]))
        setattr(self, name, matrix)
        self.arg_constraints = {**type(self).arg_constraints, "df": constraints.greater_than(n - 1)}
        super().__init__(batch, matrix.shape[-2:], validate_args=validate_args)
        if number is not None and number < n:
            warnings.warn("Low df values detected. Singular samples are highly likely to occur for "
                          "ndim - 1 < df < ndim.", stacklevel=2)
        self._set_factor(name, matrix)
        self._set_gammas(self.df, n)

    def _set_gammas(self, df, n):
        # For the squares on the diagonal; each has one degree of freedom less than the last.
        less = _C.arange(n, dtype=df.dtype, device=df.device)
        self._gammas = Gamma((df.unsqueeze(-1) - less) / 2,
                             _C.full_like(df.unsqueeze(-1), 0.5), validate_args=False)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Wishart, _instance)
        n = self._event_shape[-1]
        new.df = self.df.expand(tuple(batch_shape))
        new.arg_constraints = self.arg_constraints
        self._expand_matrices(new, (*batch_shape, n, n))
        new._set_gammas(new.df, n)
        return self._finished(Wishart, new, batch_shape)

    @property
    def mean(self):
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self):
        n = self._event_shape[-1]
        factor = self.df - n - 1
        factor = _C.where(factor <= 0, float("nan"), factor)
        return factor[..., None, None] * self.covariance_matrix

    @property
    def variance(self):
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        return self.df[..., None, None] * (
            v.square() + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def rsample(self, sample_shape=()):
        sample_shape = tuple(sample_shape)
        shape = (*sample_shape, *self._batch_shape, *self._event_shape)
        diagonal = self._gammas.rsample(sample_shape).clamp(min=tiny_of(self.df)).sqrt()
        below = standard_normal(shape, self.df.dtype, self.df.device).tril(-1)
        factor = self._unbroadcasted_scale_tril @ (diagonal.diag_embed() + below)
        return factor @ factor.mT

    def log_prob(self, value):
        self._checked(value)
        n, nu = self._event_shape[-1], self.df
        factor = self._unbroadcasted_scale_tril
        shape = broadcast_shapes(tuple(factor.shape), tuple(value.shape))
        inner = triangular_solve(factor.expand(shape), value.expand(shape))
        inverse = triangular_solve(factor.expand(shape), inner.mT)  # has the trace of V^-1 X
        trace = inverse.diagonal(dim1=-2, dim2=-1).sum(-1)
        log_det = 2 * log_diagonal(linalg.cholesky(value))
        return (-nu * (n * math.log(2) / 2 + log_diagonal(factor))
                - _C.mvlgamma(nu / 2, n) + (nu - n - 1) / 2 * log_det - trace / 2)

    def entropy(self):
        n, nu = self._event_shape[-1], self.df
        return ((n + 1) * (n * math.log(2) / 2 + log_diagonal(self._unbroadcasted_scale_tril))
                + _C.mvlgamma(nu / 2, n) - (nu - n - 1) / 2 * _multidigamma(nu / 2, n)
                + nu * n / 2)

    @property
    def _natural_params(self):
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x, y):
        n = self._event_shape[-1]
        degrees = y + (n + 1) / 2
        log_det = 2 * log_diagonal(linalg.cholesky(-2 * x))
        return degrees * (-log_det + n * math.log(2)) + _C.mvlgamma(degrees, n)


def _multidigamma(x, n):
    """The derivative of mvlgamma(x, n)."""
    less = _C.arange(n, dtype=x.dtype, device=x.device) / 2
    return _C.digamma(x.unsqueeze(-1) - less).sum(-1)


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices [dim, dim] whose density is det^(concentration - 1)
    (Lewandowski, Kurowicka and Joe, 2009), by the onion method."""

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim, concentration=1.0, validate_args=None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found "
                             f"dim={dim}.")
        self.dim = dim
        shape = self._take(concentration=concentration)
        # For the squared length of each row's part below the diagonal.
        marginal = self.concentration + 0.5 * (dim - 2)
        offset = _C.arange(dim - 1, dtype=marginal.dtype, device=marginal.device)
        offset = _C.cat([offset.new_zeros(1), offset])
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset,
                          validate_args=False)
        super().__init__(shape, (dim, dim), validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(LKJCholesky, _instance)
        new.dim = self.dim
        new.concentration = self.concentration.expand(tuple(batch_shape))
        new._beta = self._beta.expand((*batch_shape, self.dim))
        return self._finished(LKJCholesky, new, batch_shape)

    def sample(self, sample_shape=()):
        with no_grad():
            length = self._beta.sample(tuple(sample_shape)).unsqueeze(-1)
            shape = self._extended_shape(sample_shape)
            direction = standard_normal(shape, length.dtype, length.device).tril(-1)
            norm = direction.square().sum(-1, True).sqrt()
            direction = _C.where(norm > 0, direction / norm, 0.0)
            below = length.sqrt() * direction
            rest = (1 - below.square().sum(-1)).clamp(min=tiny_of(below)).sqrt()
            return below + rest.diag_embed()

    def log_prob(self, value):
        self._checked(value)
        diagonal = value.diagonal(dim1=-2, dim2=-1)[..., 1:]
        n = self.dim
        order = _C.arange(2, n + 1, dtype=self.concentration.dtype,
                          device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + n - order
        density = (order * diagonal.log()).sum(-1)
        # The logarithm of the density's integral (page 1999 of the paper).
        alpha = self.concentration + 0.5 * (n - 1)
        norm = (0.5 * (n - 1) * math.log(math.pi) + _C.mvlgamma(alpha - 0.5, n - 1)
                - _C.lgamma(alpha) * (n - 1))
        return density - norm
