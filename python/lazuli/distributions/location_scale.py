"""Distributions with a location and a scale: normal, Laplace, Cauchy, Student's t, generalized
Pareto; and the uniform distribution."""

import math

from lazuli import _C
from lazuli.distributions import constraints
from lazuli.distributions.distribution import Distribution, ExponentialFamily, Located
from lazuli.distributions.positive import Chi2
from lazuli.distributions.utils import eps_of, standard_normal

__all__ = ["Cauchy", "GeneralizedPareto", "Laplace", "Normal", "StudentT", "Uniform"]

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


class _Scaled(Located):
    """A distribution with parameters `loc` and `scale`, and maybe more."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def _standardized(self, value):
        return (self._checked(value) - self.loc) / self.scale


class _Placed(_Scaled):
    """A distribution with no other parameters than `loc` and `scale`."""

    def __init__(self, loc, scale, validate_args=None):
        super().__init__(self._take(loc=loc, scale=scale), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(_Placed, _instance, batch_shape, ("loc", "scale"))


class Normal(_Placed, ExponentialFamily):
    """The normal distribution with a mean `loc` and a standard deviation `scale`."""

    _mean_carrier_measure = 0

    @property
    def stddev(self):
        return self.scale

    @property
    def variance(self):
        return self.scale.square()

    def rsample(self, sample_shape=()):
        z = standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + z * self.scale

    def log_prob(self, value):
        z = self._standardized(value)
        return -0.5 * z.square() - self.scale.log() - HALF_LOG_TWO_PI

    def cdf(self, value):
        return 0.5 * (1 + _C.erf(self._standardized(value) / math.sqrt(2)))

    def icdf(self, value):
        return self.loc + self.scale * _C.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self):
        return 0.5 + HALF_LOG_TWO_PI + _C.log(self.scale)

    @property
    def _natural_params(self):
        return self.loc / self.scale.square(), -0.5 * self.scale.square().reciprocal()

    def _log_normalizer(self, x, y):
        return -0.25 * x.square() / y + 0.5 * _C.log(-math.pi / y)


class Laplace(_Placed):
    """The distribution of density exp(-|x - loc| / scale) / (2 scale)."""

    @property
    def variance(self):
        return 2 * self.scale.square()

    @property
    def stddev(self):
        return math.sqrt(2) * self.scale

    def rsample(self, sample_shape=()):
        shape = tuple(self._extended_shape(sample_shape))
        u = _C.rand(shape, dtype=self.loc.dtype, device=self.loc.device)
        u = u * (2 - eps_of(self.loc)) + (eps_of(self.loc) - 1)  # above -1, so that log is finite
        return self.loc - self.scale * u.sign() * _C.log1p(-u.abs())

    def log_prob(self, value):
        return -self._standardized(value).abs() - _C.log(2 * self.scale)

    def cdf(self, value):
        z = self._standardized(value)
        return 0.5 - 0.5 * z.sign() * _C.expm1(-z.abs())

    def icdf(self, value):
        u = value - 0.5
        return self.loc - self.scale * u.sign() * _C.log1p(-2 * u.abs())

    def entropy(self):
        return 1 + _C.log(2 * self.scale)


class Cauchy(_Placed):
    """Cauchy's distribution: the quotient of two normal numbers, moved and scaled. It has no
    mean."""

    @property
    def mean(self):
        return _C.full_like(self.loc, float("nan"))

    @property
    def variance(self):
        return _C.full_like(self.loc, float("inf"))

    def rsample(self, sample_shape=()):
        shape = tuple(self._extended_shape(sample_shape))
        z = _C.empty(shape, dtype=self.loc.dtype, device=self.loc.device).cauchy_()
        return self.loc + z * self.scale

    def log_prob(self, value):
        return -math.log(math.pi) - self.scale.log() - self._standardized(value).square().log1p()

    def cdf(self, value):
        return _C.atan(self._standardized(value)) / math.pi + 0.5

    def icdf(self, value):
        return _C.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self):
        return math.log(4 * math.pi) + self.scale.log()


class StudentT(_Scaled):
    """Student's t distribution with df degrees of freedom, moved and scaled."""

    arg_constraints = {"df": constraints.positive, **_Scaled.arg_constraints}

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None):
        self._take(df=df, loc=loc, scale=scale)
        self._chi2 = Chi2(self.df, validate_args=False)
        super().__init__(self.df.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(StudentT, _instance)
        new._chi2 = self._chi2.expand(batch_shape)
        return self._expanded(StudentT, new, batch_shape, ("df", "loc", "scale"))

    @property
    def mean(self):
        return _C.where(self.df > 1, self.loc, float("nan"))

    @property
    def variance(self):
        df = self.df
        large = self.scale.square() * df / (df - 2)
        return _C.where(df > 2, large, _C.where(df > 1, float("inf"), float("nan")).to(large.dtype))

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        x = standard_normal(shape, self.df.dtype, self.df.device)
        z = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * x * _C.rsqrt(z / self.df)

    def log_prob(self, value):
        z = self._standardized(value)
        norm = (self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi)
                + _C.lgamma(0.5 * self.df) - _C.lgamma(0.5 * (self.df + 1)))
        return -0.5 * (self.df + 1) * _C.log1p(z.square() / self.df) - norm

    def entropy(self):
        df = self.df
        log_beta = (_C.lgamma(0.5 * df) + math.lgamma(0.5) - _C.lgamma(0.5 * (df + 1)))
        rate = _C.digamma(0.5 * (df + 1)) - _C.digamma(0.5 * df)
        return self.scale.log() + 0.5 * (df + 1) * rate + 0.5 * df.log() + log_beta


class Uniform(Distribution):
    """The uniform distribution on [low, high)."""

    has_rsample = True

    def __init__(self, low, high, validate_args=None):
        super().__init__(self._take(low=low, high=high), validate_args=validate_args)

    @property
    def arg_constraints(self):
        # Numbers are compared at once.
        low, high = self._numbers.values() if len(self._numbers) == 2 else (self.low, self.high)
        return {"low": constraints.less_than(high), "high": constraints.greater_than(low)}

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Uniform, _instance, batch_shape, ("low", "high"))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.interval(self.low, self.high)

    @property
    def mean(self):
        return (self.high + self.low) / 2

    @property
    def mode(self):
        return float("nan") * self.high

    @property
    def stddev(self):
        return (self.high - self.low) / math.sqrt(12)

    @property
    def variance(self):
        return (self.high - self.low).square() / 12

    def rsample(self, sample_shape=()):
        shape = tuple(self._extended_shape(sample_shape))
        u = _C.rand(shape, dtype=self.low.dtype, device=self.low.device)
        return self.low + u * (self.high - self.low)

    def log_prob(self, value):
        self._checked(value)
        inside = (self.low <= value) & (self.high > value)
        return _C.log(inside.to(self.low.dtype)) - _C.log(self.high - self.low)

    def cdf(self, value):
        self._checked(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value):
        return value * (self.high - self.low) + self.low

    def entropy(self):
        return _C.log(self.high - self.low)


class GeneralizedPareto(_Scaled):
    """The distribution of values beyond a high bound `loc`. Its tail is like
    x^(-1 / concentration); it is exponential for a concentration of 0 and bounded below 0."""

    arg_constraints = {**_Scaled.arg_constraints, "concentration": constraints.real}

    def __init__(self, loc, scale, concentration, validate_args=None):
        super().__init__(self._take(loc=loc, scale=scale, concentration=concentration),
                         validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(GeneralizedPareto, _instance, batch_shape,
                              ("loc", "scale", "concentration"))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        # Below a concentration of 0 the density ends.
        end = self.loc - self.scale / self._shape_or_one
        return constraints.interval(self.loc,
                                    _C.where(self.concentration < 0, end, float("inf")))

    @property
    def _is_exponential(self):
        return _C.isclose(self.concentration, _C.zeros_like(self.concentration))

    @property
    def _shape_or_one(self):
        # 1 in place of 0, where the exponential formula is chosen.
        return _C.where(self._is_exponential, _C.ones_like(self.concentration),
                        self.concentration)

    def rsample(self, sample_shape=()):
        shape = tuple(self._extended_shape(sample_shape))
        return self.icdf(_C.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value):
        z = self._standardized(value)
        shape = self._shape_or_one
        usual = -(1 + 1 / shape) * _C.log1p(shape * z)
        return -_C.log(self.scale) + _C.where(self._is_exponential, -z, usual)

    def log_survival_function(self, value):
        """The logarithm of the probability of being above a value."""
        z, shape = self._standardized(value), self._shape_or_one
        return _C.where(self._is_exponential, -z, -_C.log1p(shape * z) / shape)

    def log_cdf(self, value):
        """The logarithm of cdf()."""
        return _C.log1p(-_C.exp(self.log_survival_function(value)))

    def cdf(self, value):
        return _C.exp(self.log_cdf(value))

    def icdf(self, value):
        shape, rest = self._shape_or_one, -_C.log1p(-value)
        usual = _C.expm1(shape * rest) / shape
        return self.loc + self.scale * _C.where(self._is_exponential, rest, usual)

    @property
    def mean(self):
        value = self.loc + self.scale / (1 - self.concentration)
        return _C.where(self.concentration < 1, value, float("inf"))

    @property
    def variance(self):
        shape = self.concentration
        value = self.scale.square() / ((1 - shape).square() * (1 - 2 * shape))
        return _C.where(shape < 0.5, value, float("nan"))

    def entropy(self):
        return (_C.log(self.scale) + self.concentration + 1).expand(self._batch_shape)
