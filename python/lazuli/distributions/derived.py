"""Distributions that are transforms of others: log-normal, half-normal, Gumbel, Pareto, Weibull and
more."""

import math

from lazuli import _C
from lazuli.distributions import constraints
from lazuli.distributions.location_scale import Cauchy, Normal, Uniform
from lazuli.distributions.positive import Exponential, Gamma
from lazuli.distributions.transformed import TransformedDistribution
from lazuli.distributions.transforms import (AbsTransform, AffineTransform, ExpTransform,
                                             PowerTransform, StickBreakingTransform)
from lazuli.distributions.utils import euler_constant, is_number
from lazuli._types import finfo

__all__ = ["Gumbel", "HalfCauchy", "HalfNormal", "InverseGamma", "Kumaraswamy", "LogNormal",
           "LogisticNormal", "Pareto", "Weibull"]


class LogNormal(TransformedDistribution):
    """exp() of normal numbers."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(),
                         validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(LogNormal, _instance))

    @property
    def loc(self):
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self):
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self):
        return (self.loc + self.scale.square() / 2).exp()

    @property
    def mode(self):
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self):
        square = self.scale.square()
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self):
        return self.base_dist.entropy() + self.loc


class LogisticNormal(TransformedDistribution):
    """Normal vectors of n numbers mapped to the simplex of n + 1 shares."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(LogisticNormal, _instance))

    @property
    def loc(self):
        """The mean of the normal vectors."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self):
        """The standard deviations of the normal vectors."""
        return self.base_dist.base_dist.scale


class _Half(TransformedDistribution):
    """The absolute values of a distribution around 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _base = None

    def __init__(self, scale, validate_args=None):
        base = type(self)._base(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(_Half, _instance))

    @property
    def scale(self):
        """The scale of the distribution on both sides."""
        return self.base_dist.scale

    @property
    def mode(self):
        return _C.zeros_like(self.scale)

    def log_prob(self, value):
        self._checked(value)
        log = self.base_dist.log_prob(value) + math.log(2)
        return _C.where(value >= 0, log, -float("inf"))

    def cdf(self, value):
        self._checked(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob):
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self):
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(_Half):
    """The absolute values of normal numbers around 0."""

    _base = Normal

    @property
    def mean(self):
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self):
        return self.scale.square() * (1 - 2 / math.pi)


class HalfCauchy(_Half):
    """The absolute values of Cauchy numbers around 0."""

    _base = Cauchy

    @property
    def mean(self):
        return _C.full(tuple(self._extended_shape()), float("inf"), dtype=self.scale.dtype,
                       device=self.scale.device)

    @property
    def variance(self):
        return self.base_dist.variance


class Gumbel(TransformedDistribution):
    """Gumbel's distribution of the greatest of many numbers."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc, scale, validate_args=None):
        self._take(loc=loc, scale=scale)
        limits = finfo(self.loc.dtype)
        if is_number(loc) and is_number(scale):
            base = Uniform(limits.tiny, 1 - limits.eps, validate_args=validate_args)
        else:
            base = Uniform(_C.full_like(self.loc, limits.tiny),
                           _C.full_like(self.loc, 1 - limits.eps), validate_args=False)
            base._validate_args = self._validate_args if validate_args is None else validate_args
        # -log(-log(u)) of uniform numbers.
        transforms = [ExpTransform().inv, AffineTransform(0, -_C.ones_like(self.scale)),
                      ExpTransform().inv, AffineTransform(self.loc, -self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Gumbel, _instance)
        self._expand_into(new, batch_shape, ("loc", "scale"))
        return super().expand(batch_shape, new)

    def log_prob(self, value):
        self._checked(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    @property
    def mean(self):
        return self.loc + self.scale * euler_constant

    @property
    def mode(self):
        return self.loc

    @property
    def stddev(self):
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self):
        return self.stddev.square()

    def entropy(self):
        return self.scale.log() + (1 + euler_constant)


class InverseGamma(TransformedDistribution):
    """The reciprocals of gamma numbers."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration, rate, validate_args=None):
        base = Gamma(concentration, rate, validate_args=validate_args)
        exponent = -base.rate.new_ones(())
        super().__init__(base, PowerTransform(exponent), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(InverseGamma, _instance))

    @property
    def concentration(self):
        """The shape parameter of the gamma numbers."""
        return self.base_dist.concentration

    @property
    def rate(self):
        """The rate of the gamma numbers."""
        return self.base_dist.rate

    @property
    def mean(self):
        value = self.rate / (self.concentration - 1)
        return _C.where(self.concentration > 1, value, float("inf"))

    @property
    def mode(self):
        return self.rate / (self.concentration + 1)

    @property
    def variance(self):
        a = self.concentration
        value = self.rate.square() / ((a - 1).square() * (a - 2))
        return _C.where(a > 2, value, float("inf"))

    def entropy(self):
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()


class Kumaraswamy(TransformedDistribution):
    """Kumaraswamy's distribution on (0, 1): 1 - (1 - x^a)^b is uniform."""

    arg_constraints = {"concentration1": constraints.positive,
                       "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None):
        self._take(concentration1=concentration1, concentration0=concentration0)
        base = Uniform(_C.full_like(self.concentration0, 0),
                       _C.full_like(self.concentration0, 1), validate_args=validate_args)
        transforms = [PowerTransform(self.concentration0.reciprocal()),
                      AffineTransform(1.0, -1.0),
                      PowerTransform(self.concentration1.reciprocal())]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Kumaraswamy, _instance)
        self._expand_into(new, batch_shape, ("concentration1", "concentration0"))
        return super().expand(batch_shape, new)

    def _moment(self, n):
        """The mean of the n-th power: b beta(1 + n / a, b)."""
        a, b = self.concentration1, self.concentration0
        x = 1 + n / a
        return _C.exp(b.log() + x.lgamma() + b.lgamma() - (x + b).lgamma())

    @property
    def mean(self):
        return self._moment(1)

    @property
    def mode(self):
        a, b = self.concentration1, self.concentration0
        at = ((a - 1) / (a * b - 1)).pow(1 / a)
        return _C.where((a < 1) | (b < 1), float("nan"), at)

    @property
    def variance(self):
        return self._moment(2) - self._moment(1).square()

    def entropy(self):
        a, b = self.concentration1, self.concentration0
        harmonic = _C.digamma(b + 1) + euler_constant
        return ((1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - _C.log(a) - _C.log(b))


class Pareto(TransformedDistribution):
    """Pareto's distribution of numbers from `scale` on, whose tail is x^-alpha."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale, alpha, validate_args=None):
        self._take(scale=scale, alpha=alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        super().__init__(base, [ExpTransform(), AffineTransform(loc=0, scale=self.scale)],
                         validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Pareto, _instance)
        self._expand_into(new, batch_shape, ("scale", "alpha"))
        return super().expand(batch_shape, new)

    @property
    def mean(self):
        a = self.alpha.clamp(min=1)  # infinite up to 1
        return a * self.scale / (a - 1)

    @property
    def mode(self):
        return self.scale

    @property
    def variance(self):
        a = self.alpha.clamp(min=2)  # infinite up to 2
        return self.scale.square() * a / ((a - 1).square() * (a - 2))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.greater_than_eq(self.scale)

    def entropy(self):
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class Weibull(TransformedDistribution):
    """Weibull's distribution: a power of exponential numbers."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale, concentration, validate_args=None):
        self._take(scale=scale, concentration=concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(_C.ones_like(self.scale), validate_args=validate_args)
        transforms = [PowerTransform(exponent=self.concentration_reciprocal),
                      AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Weibull, _instance)
        self._expand_into(new, batch_shape,
                          ("scale", "concentration", "concentration_reciprocal"))
        return super().expand(batch_shape, new)

    @property
    def mean(self):
        return self.scale * _C.exp(_C.lgamma(1 + self.concentration_reciprocal))

    @property
    def mode(self):
        k = self.concentration
        return self.scale * ((k - 1) / k).pow(k.reciprocal())

    @property
    def variance(self):
        inverse = self.concentration_reciprocal
        return self.scale.square() * (_C.exp(_C.lgamma(1 + 2 * inverse))
                                      - _C.exp(2 * _C.lgamma(1 + inverse)))

    def entropy(self):
        return (euler_constant * (1 - self.concentration_reciprocal)
                + _C.log(self.scale * self.concentration_reciprocal) + 1)
