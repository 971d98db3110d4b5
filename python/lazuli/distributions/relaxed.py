"""Continuous relaxations of choices (Maddison, Mnih and Teh, 2017; Jang, Gu and Poole, 2017), whose
samples have gradients."""

import math

from lazuli.distributions import constraints
from lazuli.distributions.categorical import Categorical, OverCategories
from lazuli.distributions.discrete import OfChance
from lazuli.distributions.transformed import TransformedDistribution
from lazuli.distributions.transforms import ExpTransform, SigmoidTransform
from lazuli.distributions.utils import broadcast_all, clamp_probs, open_uniform

__all__ = ["ExpRelaxedCategorical", "LogitRelaxedBernoulli", "RelaxedBernoulli",
           "RelaxedOneHotCategorical"]


def _log(temperature):
    """The logarithm of a number or a tensor."""
    return temperature.log() if hasattr(temperature, "log") else math.log(temperature)


class LogitRelaxedBernoulli(OfChance):
    """The log odds of RelaxedBernoulli's numbers."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self.temperature = temperature
        super().__init__(self._take_one(probs, logits), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(LogitRelaxedBernoulli, _instance)
        new.temperature = self.temperature
        return self._expanded(LogitRelaxedBernoulli, new, batch_shape, ("probs", "logits"))

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(tuple(shape)))
        u = open_uniform(shape, probs.dtype, probs.device)
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value):
        logits, value = broadcast_all(self.logits, self._checked(value))
        difference = logits - value * self.temperature
        return _log(self.temperature) + difference - 2 * difference.exp().log1p()


class _Relaxed(TransformedDistribution):
    """A transformed distribution with the parameters of its base."""

    has_rsample = True

    @property
    def temperature(self):
        """How far samples are from a choice."""
        return self.base_dist.temperature

    @property
    def logits(self):
        """Log odds, or log probabilities of categories."""
        return self.base_dist.logits

    @property
    def probs(self):
        """Probabilities."""
        return self.base_dist.probs


class RelaxedBernoulli(_Relaxed):
    """Numbers in (0, 1), which at temperature 0 are samples of Bernoulli."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(),
                         validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(RelaxedBernoulli, _instance))


class ExpRelaxedCategorical(OverCategories):
    """The logarithms of RelaxedOneHotCategorical's vectors."""

    support = constraints.real_vector
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:],
                         validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(ExpRelaxedCategorical, _instance)
        new.temperature = self.temperature
        new._categorical = self._categorical.expand(batch_shape)
        return self._finished(ExpRelaxedCategorical, new, batch_shape)

    def rsample(self, sample_shape=()):
        shape, logits = self._extended_shape(sample_shape), self.logits
        gumbel = -((-open_uniform(shape, logits.dtype, logits.device).log()).log())
        scores = (logits + gumbel) / self.temperature
        return scores - scores.logsumexp(-1, True)

    def log_prob(self, value):
        self._checked(value)
        count = self._categorical._num_events
        logits, value = broadcast_all(self.logits, value)
        scale = math.lgamma(count) + (count - 1) * _log(self.temperature)
        scores = logits - value * self.temperature
        return (scores - scores.logsumexp(-1, True)).sum(-1) + scale


class RelaxedOneHotCategorical(_Relaxed):
    """Vectors on the simplex, which at temperature 0 are samples of OneHotCategorical."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape,
                              self._get_checked_instance(RelaxedOneHotCategorical, _instance))
