"""Distributions of counts: Bernoulli, geometric, Poisson, binomial, negative binomial; and the
continuous Bernoulli, which has Bernoulli's parameters."""

import math

from lazuli import _C
from lazuli.autograd import no_grad
from lazuli.distributions import constraints
from lazuli.distributions.categorical import ByProbabilities
from lazuli.distributions.distribution import ExponentialFamily, require
from lazuli.distributions.positive import Gamma
from lazuli.distributions.utils import (broadcast_all, clamp_probs, is_number, lazy_property,
                                        one_of_both, tiny_of)
from lazuli.nn import functional as F  # noqa: N812

__all__ = ["Bernoulli", "Binomial", "ContinuousBernoulli", "Geometric", "NegativeBinomial",
           "Poisson"]


class OfChance(ByProbabilities):
    """A distribution with one probability."""

    _is_binary = True

    def _take_one(self, probs, logits, **others):
        """Sets the one that is given, and other parameters; gives the batch's shape."""
        name, value = one_of_both(probs, logits)
        return self._take(**others, **{name: value})

    def _values(self, count, expand):
        """The support 0 ... count - 1 for enumerate_support()."""
        values = _C.arange(count, dtype=self._param.dtype, device=self._param.device)
        return self._enumerated(values, expand)


class Bernoulli(OfChance, ExponentialFamily):
    """1 with a probability, else 0."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(self, probs=None, logits=None, validate_args=None):
        super().__init__(self._take_one(probs, logits), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Bernoulli, _instance, batch_shape, ("probs", "logits"))

    @property
    def mean(self):
        return self.probs

    @property
    def mode(self):
        mode = (self.probs >= 0.5).to(self.probs.dtype)
        return _C.where(self.probs == 0.5, float("nan"), mode)

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        with no_grad():
            return _C.bernoulli(self.probs.expand(tuple(self._extended_shape(sample_shape))))

    def log_prob(self, value):
        logits, value = broadcast_all(self.logits, self._checked(value))
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self):
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand=True):
        return self._values(2, expand)

    @property
    def _natural_params(self):
        return (_C.logit(self.probs),)

    def _log_normalizer(self, x):
        return _C.log1p(_C.exp(x))


class ContinuousBernoulli(OfChance, ExponentialFamily):
    """The distribution on [0, 1] of density proportional to p^x (1 - p)^(1 - x) (Loaiza-Ganem and
    Cunningham, 2019). Taylor's series are used for probabilities between the two `lims`: around 1/2
    the formulas lose all digits."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None):
        self._lims = lims
        shape = self._take_one(probs, logits)
        if probs is not None:
            if validate_args:
                if is_number(probs):
                    if not 0 <= probs <= 1:
                        raise ValueError("The parameter probs has invalid values")
                else:
                    require(constraints.unit_interval.check(self.probs), "ContinuousBernoulli",
                            "The parameter probs has invalid values: Interval(lower_bound=0.0, "
                            "upper_bound=1.0) is to be satisfied")
            self.probs = clamp_probs(self.probs)
        super().__init__(shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(ContinuousBernoulli, _instance)
        new._lims = self._lims
        return self._expanded(ContinuousBernoulli, new, batch_shape, ("probs", "logits"))

    def _outside(self):
        """Where the formulas are exact."""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _exact_probs(self):
        """The probabilities, with another one where the formulas are not exact."""
        return _C.where(self._outside(), self.probs, self._lims[0])

    def _log_constant(self):
        """The logarithm of the factor that makes the density's integral 1."""
        p = self._exact_probs()
        low = _C.where(p <= 0.5, p, 0.0)
        high = _C.where(p >= 0.5, p, 1.0)
        exact = (_C.log(_C.abs(_C.log1p(-p) - _C.log(p)))
                 - _C.where(p <= 0.5, _C.log1p(-2 * low), _C.log(2 * high - 1)))
        x = (self.probs - 0.5).square()
        series = math.log(2.0) + (4.0 / 3 + 104.0 / 45 * x) * x
        return _C.where(self._outside(), exact, series)

    @property
    def mean(self):
        p = self._exact_probs()
        exact = p / (2 * p - 1) + 1 / (_C.log1p(-p) - _C.log(p))
        x = self.probs - 0.5
        return _C.where(self._outside(), exact, 0.5 + (1.0 / 3 + 16.0 / 45 * x.square()) * x)

    @property
    def variance(self):
        p = self._exact_probs()
        exact = (p * (p - 1) / (1 - 2 * p).square()
                 + 1 / (_C.log1p(-p) - _C.log(p)).square())
        x = (self.probs - 0.5).square()
        return _C.where(self._outside(), exact, 1.0 / 12 - (1.0 / 15 - 128.0 / 945 * x) * x)

    def rsample(self, sample_shape=()):
        shape = tuple(self._extended_shape(sample_shape))
        return self.icdf(_C.rand(shape, dtype=self._param.dtype, device=self._param.device))

    def log_prob(self, value):
        logits, value = broadcast_all(self.logits, self._checked(value))
        return (-F.binary_cross_entropy_with_logits(logits, value, reduction="none")
                + self._log_constant())

    def cdf(self, value):
        self._checked(value)
        p = self._exact_probs()
        exact = (p.pow(value) * (1 - p).pow(1 - value) + p - 1) / (2 * p - 1)
        share = _C.where(self._outside(), exact, value)
        return _C.where(value <= 0, 0.0, _C.where(value >= 1, 1.0, share))

    def icdf(self, value):
        p = self._exact_probs()
        exact = ((_C.log1p(-p + value * (2 * p - 1)) - _C.log1p(-p))
                 / (_C.log(p) - _C.log1p(-p)))
        return _C.where(self._outside(), exact, value)

    def entropy(self):
        rest, log = _C.log1p(-self.probs), _C.log(self.probs)
        return self.mean * (rest - log) - self._log_constant() - rest

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, x):
        """log((exp(x) - 1) / x)."""
        outside = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        kept = _C.where(outside, x, (self._lims[0] - 0.5) * _C.ones_like(x))
        exact = _C.log(_C.abs(_C.expm1(kept))) - _C.log(_C.abs(kept))
        return _C.where(outside, exact, 0.5 * x + x.square() / 24 - x.pow(4) / 2880)


class Geometric(OfChance):
    """How many failures precede the first success, which has a probability."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs=None, logits=None, validate_args=None):
        shape = self._take_one(probs, logits)
        super().__init__(shape, validate_args=validate_args)
        if self._validate_args and probs is not None:
            what = ("Expected parameter probs (Tensor of shape "
                    f"{tuple(self.probs.shape)}) of distribution Geometric to be positive")
            if not is_number(probs):
                require(self.probs > 0, "Geometric", what)
            elif not probs > 0:
                raise ValueError(f"{what} but found invalid values:\n{probs}")

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Geometric, _instance, batch_shape, ("probs", "logits"))

    @property
    def mean(self):
        return 1.0 / self.probs - 1.0

    @property
    def mode(self):
        return _C.zeros_like(self.probs)

    @property
    def variance(self):
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape=()):
        with no_grad():
            shape = tuple(self._extended_shape(sample_shape))
            u = _C.rand(shape, dtype=self.probs.dtype, device=self.probs.device)
            return (u.clamp(min=tiny_of(u)).log() / (-self.probs).log1p()).floor()

    def log_prob(self, value):
        value, probs = broadcast_all(self._checked(value), self.probs)
        rest = _C.where((probs == 1) & (value == 0), 0.0, -probs)
        return value * rest.log1p() + self.probs.log()

    def entropy(self):
        return F.binary_cross_entropy_with_logits(self.logits, self.probs,
                                                  reduction="none") / self.probs


class Poisson(ExponentialFamily):
    """How many events there are where `rate` are expected."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate, validate_args=None):
        super().__init__(self._take(rate=rate), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Poisson, _instance, batch_shape, ("rate",))

    @property
    def mean(self):
        return self.rate

    @property
    def mode(self):
        return self.rate.floor()

    @property
    def variance(self):
        return self.rate

    def sample(self, sample_shape=()):
        with no_grad():
            return _C.poisson(self.rate.expand(tuple(self._extended_shape(sample_shape))))

    def log_prob(self, value):
        self._checked(value)
        rate, value = broadcast_all(self.rate, value)
        return _C.xlogy(value, rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self):
        return (_C.log(self.rate),)

    def _log_normalizer(self, x):
        return _C.exp(x)


class Binomial(OfChance):
    """How many of total_count trials succeed, each with a probability."""

    arg_constraints = {"total_count": constraints.nonnegative_integer,
                       "probs": constraints.unit_interval, "logits": constraints.real}
    has_enumerate_support = True

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        shape = self._take_one(probs, logits, total_count=total_count)
        self.total_count = self.total_count.to(self._param.dtype)
        self._count = total_count if is_number(total_count) else None
        super().__init__(shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Binomial, _instance)
        new._count = self._count
        return self._expanded(Binomial, new, batch_shape, ("total_count", "probs", "logits"))

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self):
        return self.total_count * self.probs

    @property
    def mode(self):
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        with no_grad():
            shape = tuple(self._extended_shape(sample_shape))
            return _C.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value):
        self._checked(value)
        n, logits = self.total_count, self.logits
        # -n log(1 - p) without overflow.
        norm = n * _C.logaddexp(logits, _C.zeros_like(logits)) - _C.lgamma(n + 1)
        return (value * logits - _C.lgamma(value + 1) - _C.lgamma(n - value + 1) - norm)

    def _most(self):
        """The number of trials, which must be the same for the whole batch. A tensor is read."""
        if self._count is not None:
            return int(self._count)
        most = int(self.total_count.max())
        if int(self.total_count.min()) != most:
            raise NotImplementedError(
                "Inhomogeneous total count not supported by `enumerate_support`.")
        return most

    def entropy(self):
        values = self._values(1 + self._most(), False)
        log_prob = self.log_prob(values)
        return -(_C.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand=True):
        return self._values(1 + self._most(), expand)


class NegativeBinomial(OfChance):
    """How many successes, each with a probability, there are before total_count failures."""

    arg_constraints = {"total_count": constraints.greater_than_eq(0),
                       "probs": constraints.half_open_interval(0.0, 1.0),
                       "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, total_count, probs=None, logits=None, validate_args=None):
        shape = self._take_one(probs, logits, total_count=total_count)
        self.total_count = self.total_count.to(self._param.dtype)
        super().__init__(shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(NegativeBinomial, _instance, batch_shape,
                              ("total_count", "probs", "logits"))

    @property
    def mean(self):
        return self.total_count * _C.exp(self.logits)

    @property
    def mode(self):
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self):
        return self.mean / _C.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self):
        return Gamma(self.total_count, _C.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape=()):
        with no_grad():
            return _C.poisson(self._gamma.sample(tuple(sample_shape)))

    def log_prob(self, value):
        self._checked(value)
        weight = (self.total_count * F.logsigmoid(-self.logits)
                  + value * F.logsigmoid(self.logits))
        ways = (-_C.lgamma(self.total_count + value) + _C.lgamma(1.0 + value)
                + _C.lgamma(self.total_count))
        # With no failures to wait for, 0 is certain.
        ways = ways.masked_fill(self.total_count + value == 0, 0.0)
        return weight - ways
