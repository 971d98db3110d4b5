"""Distributions of a choice among categories."""

import math

from lazuli import _C
from lazuli.autograd import no_grad
from lazuli.distributions import constraints
from lazuli.distributions.distribution import Distribution
from lazuli.distributions.utils import (lazy_property, logits_to_probs, one_of_both,
                                        probs_to_logits)
from lazuli._types import finfo
from lazuli.nn import functional as F  # noqa: N812

__all__ = ["Categorical", "Multinomial", "OneHotCategorical", "OneHotCategoricalStraightThrough"]


def log_choose(total, parts):
    """log(total! / product of the parts!) of counts along the last dim."""
    return _C.lgamma(total + 1) - _C.lgamma(parts + 1).sum(-1)


class ByProbabilities(Distribution):
    """A distribution by probabilities, given as `probs` or as `logits`. Logits are log odds if
    _is_binary, else the logarithms of probabilities along the last dim."""

    _is_binary = False

    @property
    def _param(self):
        return self.__dict__["probs"] if "probs" in self.__dict__ else self.__dict__["logits"]

    @lazy_property
    def logits(self):
        """Log odds, or log probabilities of categories."""
        return probs_to_logits(self.probs, self._is_binary)

    @lazy_property
    def probs(self):
        """Probabilities."""
        return logits_to_probs(self.logits, self._is_binary)

    @property
    def param_shape(self):
        """The shape of the parameter."""
        return self._param.shape


class Categorical(ByProbabilities):
    """A category 0 ... n - 1, by probabilities or logits along the last dim, which are
    normalised."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        name, given = one_of_both(probs, logits)
        if given.ndim < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if probs is not None:
            self.probs = probs / probs.sum(-1, True)
        else:
            self.logits = logits - logits.logsumexp(-1, True)
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Categorical, _instance)
        new._num_events = self._num_events
        return self._expanded(Categorical, new, batch_shape, ("probs", "logits"),
                              (self._num_events,))

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self):
        return _nan(self)

    @property
    def mode(self):
        return self.probs.argmax(-1)

    @property
    def variance(self):
        return _nan(self)

    def sample(self, sample_shape=()):
        with no_grad():
            shape, count = self._extended_shape(sample_shape), math.prod(sample_shape)
            if not count:
                return _C.zeros(tuple(shape), dtype=_C.int64, device=self._param.device)
            rows = self.probs.reshape(-1, self._num_events)
            return _C.multinomial(rows, count, True).T.reshape(tuple(shape))

    def log_prob(self, value):
        self._checked(value)
        value, logits = _C.broadcast_tensors([value.long().unsqueeze(-1), self.logits])
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self):
        least = finfo(self.logits.dtype).min
        return -(self.logits.clamp(min=least) * self.probs).sum(-1)

    def enumerate_support(self, expand=True):
        values = _C.arange(self._num_events, dtype=_C.int64, device=self._param.device)
        return self._enumerated(values, expand)


def _nan(distribution):
    return _C.full(tuple(distribution._extended_shape()), float("nan"),
                   dtype=distribution._param.dtype, device=distribution._param.device)


class OverCategories(Distribution):
    """A distribution of vectors with one element per category of the Categorical `_categorical`."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    @property
    def probs(self):
        """Probabilities."""
        return self._categorical.probs

    @property
    def logits(self):
        """Log probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self):
        """The shape of the parameter."""
        return self._categorical.param_shape


class OneHotCategorical(OverCategories):
    """A category as a vector of zeros with a single one."""

    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:],
                         validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(OneHotCategorical, _instance)
        new._categorical = self._categorical.expand(batch_shape)
        return self._finished(OneHotCategorical, new, batch_shape)

    @property
    def _param(self):
        return self._categorical._param

    @property
    def mean(self):
        return self._categorical.probs

    @property
    def mode(self):
        return self._one_hot(self._categorical.mode)

    @property
    def variance(self):
        return self._categorical.probs * (1 - self._categorical.probs)

    def _one_hot(self, index):
        count = self._categorical._num_events
        return F.one_hot(index, count).to(self._param.dtype)

    def sample(self, sample_shape=()):
        with no_grad():
            return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value):
        self._checked(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self):
        return self._categorical.entropy()

    def enumerate_support(self, expand=True):
        values = _C.eye(self.event_shape[0], dtype=self._param.dtype, device=self._param.device)
        return self._enumerated(values, expand)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """OneHotCategorical whose samples pass their gradient on to the probabilities (Bengio, Leonard
    and Courville, 2013)."""

    has_rsample = True

    def rsample(self, sample_shape=()):
        sample = self.sample(sample_shape)
        probs = self._categorical.probs
        return sample + (probs - probs.detach())


class Multinomial(OverCategories):
    """How often each category is drawn in total_count draws."""

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:],
                         validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Multinomial, _instance)
        new.total_count, new._categorical = self.total_count, self._categorical.expand(batch_shape)
        return self._finished(Multinomial, new, batch_shape)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        return constraints.multinomial(self.total_count)

    @property
    def mean(self):
        return self.probs * self.total_count

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        with no_grad():
            drawn = self._categorical.sample((self.total_count, *sample_shape))
            hits = F.one_hot(drawn, self._categorical._num_events)
            return hits.sum(0).to(self.probs.dtype)

    def log_prob(self, value):
        self._checked(value)
        logits, value = _C.broadcast_tensors([self.logits, value])
        certain = (value == 0) & (logits == -float("inf"))
        terms = logits.masked_fill(certain, 0) * value
        return log_choose(value.sum(-1), value) + terms.sum(-1)

    def entropy(self):
        # n times the entropy of one draw, less the entropy of the draws' order: log n! less the
        # expected logarithms of the counts' factorials. Each count is binomial.
        n = _C.full((), self.total_count, dtype=self.probs.dtype, device=self.probs.device)
        counts = _C.arange(1, self.total_count + 1, dtype=self.probs.dtype,
                           device=self.probs.device)
        counts = counts.reshape(-1, *(1,) * self.probs.ndim)
        probs = self.probs
        chosen = (_C.lgamma(n + 1) - _C.lgamma(counts + 1) - _C.lgamma(n - counts + 1)
                  + counts * _C.log(probs) + _C.special.xlog1py(n - counts, -probs))
        expected = (_C.exp(chosen) * _C.lgamma(counts + 1)).sum([0, -1])
        return n * self._categorical.entropy() - _C.lgamma(n + 1) + expected
