"""Distributions on positive numbers and on the simplex, most of them by gamma samples: exponential,
gamma, chi-squared, beta, Dirichlet, Fisher and Snedecor's."""

from lazuli import _C
from lazuli.distributions import constraints
from lazuli.distributions.distribution import Distribution, ExponentialFamily
from lazuli.distributions.utils import tiny_of
from lazuli.nn import functional as F  # noqa: N812

__all__ = ["Beta", "Chi2", "Dirichlet", "Exponential", "FisherSnedecor", "Gamma"]


class Exponential(ExponentialFamily):
    """The exponential distribution of a rate."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, rate, validate_args=None):
        super().__init__(self._take(rate=rate), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Exponential, _instance, batch_shape, ("rate",))

    @property
    def mean(self):
        return self.rate.reciprocal()

    @property
    def mode(self):
        return _C.zeros_like(self.rate)

    @property
    def stddev(self):
        return self.rate.reciprocal()

    @property
    def variance(self):
        return self.rate.pow(-2)

    def rsample(self, sample_shape=()):
        shape = tuple(self._extended_shape(sample_shape))
        return _C.empty(shape, dtype=self.rate.dtype,
                        device=self.rate.device).exponential_() / self.rate

    def log_prob(self, value):
        self._checked(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value):
        self._checked(value)
        return 1 - _C.exp(-self.rate * value)

    def icdf(self, value):
        return -_C.log1p(-value) / self.rate

    def entropy(self):
        return 1 - _C.log(self.rate)

    @property
    def _natural_params(self):
        return (-self.rate,)

    def _log_normalizer(self, x):
        return -_C.log(-x)


def _above_zero(drawn):
    """Samples with 0 replaced by the least normal number, so that their logarithms are finite;
    gradients are those of the samples."""
    return drawn + (drawn.detach().clamp(min=tiny_of(drawn)) - drawn.detach())


class Gamma(ExponentialFamily):
    """The gamma distribution with a shape parameter `concentration` and a rate."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration, rate, validate_args=None):
        super().__init__(self._take(concentration=concentration, rate=rate),
                         validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Gamma, _instance, batch_shape, ("concentration", "rate"))

    @property
    def mean(self):
        return self.concentration / self.rate

    @property
    def mode(self):
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self):
        return self.concentration / self.rate.square()

    def rsample(self, sample_shape=()):
        shape = tuple(self._extended_shape(sample_shape))
        return _above_zero(_C.standard_gamma(self.concentration.expand(shape)) / self.rate)

    def log_prob(self, value):
        if not hasattr(value, "dtype"):
            value = _C.full((), value, dtype=self.rate.dtype, device=self.rate.device)
        self._checked(value)
        return (_C.xlogy(self.concentration, self.rate) + _C.xlogy(self.concentration - 1, value)
                - self.rate * value - _C.lgamma(self.concentration))

    def cdf(self, value):
        self._checked(value)
        return _C.igamma(self.concentration, self.rate * value)

    def entropy(self):
        return (self.concentration - _C.log(self.rate) + _C.lgamma(self.concentration)
                + (1 - self.concentration) * _C.digamma(self.concentration))

    @property
    def _natural_params(self):
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x, y):
        return _C.lgamma(x + 1) + (x + 1) * _C.log(-y.reciprocal())


class Chi2(Gamma):
    """The distribution of the sum of `df` squares of standard normal numbers."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df, validate_args=None):
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(Chi2, _instance))

    @property
    def df(self):
        """The degrees of freedom."""
        return self.concentration * 2


class Dirichlet(ExponentialFamily):
    """Dirichlet's distribution on the simplex, with concentrations along the last dim."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration, validate_args=None):
        if concentration.ndim < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:],
                         validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Dirichlet, _instance, batch_shape, ("concentration",),
                              self.event_shape)

    def rsample(self, sample_shape=()):
        shape = tuple(self._extended_shape(sample_shape))
        return _C.sample_dirichlet(self.concentration.expand(shape))

    def log_prob(self, value):
        self._checked(value)
        return (_C.xlogy(self.concentration - 1, value).sum(-1)
                + _C.lgamma(self.concentration.sum(-1)) - _C.lgamma(self.concentration).sum(-1))

    @property
    def mean(self):
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self):
        # Where no concentration reaches 1, the mode is the corner of the largest one.
        above = (self.concentration - 1).clamp(min=0)
        mode = above / above.sum(-1, True)
        largest = self.concentration.argmax(-1)
        corner = F.one_hot(largest, self.concentration.shape[-1]).to(mode.dtype)
        return _C.where((self.concentration < 1).all(-1, True), corner, mode)

    @property
    def variance(self):
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.square() * (total + 1))

    def entropy(self):
        count, total = self.concentration.shape[-1], self.concentration.sum(-1)
        return (_C.lgamma(self.concentration).sum(-1) - _C.lgamma(total)
                - (count - total) * _C.digamma(total)
                - ((self.concentration - 1) * _C.digamma(self.concentration)).sum(-1))

    @property
    def _natural_params(self):
        return (self.concentration,)

    def _log_normalizer(self, x):
        return x.lgamma().sum(-1) - _C.lgamma(x.sum(-1))


class Beta(ExponentialFamily):
    """The beta distribution on (0, 1): the first of the two shares of a Dirichlet sample."""

    arg_constraints = {"concentration1": constraints.positive,
                       "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None):
        both = self._stretched(concentration1=concentration1, concentration0=concentration0)
        self._dirichlet = Dirichlet(_C.stack(both, -1), validate_args=False)
        super().__init__(self._dirichlet.batch_shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Beta, _instance)
        new._dirichlet = self._dirichlet.expand(batch_shape)
        return self._finished(Beta, new, batch_shape)

    @property
    def concentration1(self):
        """The concentration of the value."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self):
        """The concentration of the rest to 1."""
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self):
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self):
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self):
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.square() * (total + 1))

    def rsample(self, sample_shape=()):
        return self._dirichlet.rsample(tuple(sample_shape)).select(-1, 0)

    def log_prob(self, value):
        self._checked(value)
        return self._dirichlet.log_prob(_C.stack([value, 1.0 - value], -1))

    def entropy(self):
        return self._dirichlet.entropy()

    @property
    def _natural_params(self):
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x, y):
        return _C.lgamma(x) + _C.lgamma(y) - _C.lgamma(x + y)


class FisherSnedecor(Distribution):
    """Fisher and Snedecor's F: the quotient of two chi-squared numbers, each over its degrees of
    freedom."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1, df2, validate_args=None):
        shape = self._take(df1=df1, df2=df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1, validate_args=False)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2, validate_args=False)
        super().__init__(shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(FisherSnedecor, _instance)
        new._gamma1 = self._gamma1.expand(batch_shape)
        new._gamma2 = self._gamma2.expand(batch_shape)
        return self._expanded(FisherSnedecor, new, batch_shape, ("df1", "df2"))

    @property
    def mean(self):
        return _C.where(self.df2 > 2, self.df2 / (self.df2 - 2), float("nan"))

    @property
    def mode(self):
        at = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return _C.where(self.df1 > 2, at, float("nan"))

    @property
    def variance(self):
        df1, df2 = self.df1, self.df2
        value = (2 * df2.square() * (df1 + df2 - 2)
                 / (df1 * (df2 - 2).square() * (df2 - 4)))
        return _C.where(df2 > 4, value, float("nan"))

    def rsample(self, sample_shape=()):
        sample_shape = tuple(sample_shape)
        return _above_zero(self._gamma1.rsample(sample_shape)
                           / self._gamma2.rsample(sample_shape))

    def log_prob(self, value):
        self._checked(value)
        half1, half2, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        log_beta = _C.lgamma(half1) + _C.lgamma(half2) - _C.lgamma(half1 + half2)
        return (half1 * ratio.log() + (half1 - 1) * _C.log(value)
                - (half1 + half2) * _C.log1p(ratio * value) - log_beta)
