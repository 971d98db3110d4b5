"""Distributions made of others: of transformed values, of several dims as one value, of a choice
among components."""

from lazuli import _C
from lazuli._names import broadcast_shapes
from lazuli.autograd import no_grad
from lazuli.distributions import constraints
from lazuli.distributions.categorical import Categorical
from lazuli.distributions.distribution import Distribution
from lazuli.distributions.transforms import ComposeTransform, Transform
from lazuli.distributions.utils import sum_rightmost

__all__ = ["Independent", "MixtureSameFamily", "TransformedDistribution"]


class Independent(Distribution):
    """The last dims of a batch as dims of one value, whose log probabilities are summed."""

    arg_constraints = {}

    def __init__(self, base_distribution, reinterpreted_batch_ndims, validate_args=None):
        count = len(base_distribution.batch_shape)
        if reinterpreted_batch_ndims > count:
            raise ValueError("Expected reinterpreted_batch_ndims <= len(base_distribution."
                             f"batch_shape), actual {reinterpreted_batch_ndims} vs {count}")
        shape = base_distribution.batch_shape + base_distribution.event_shape
        event = reinterpreted_batch_ndims + len(base_distribution.event_shape)
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(shape[:len(shape) - event], shape[len(shape) - event:], validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Independent, _instance)
        new.base_dist = self.base_dist.expand(
            (*batch_shape, *self.event_shape[:self.reinterpreted_batch_ndims]))
        new.reinterpreted_batch_ndims = self.reinterpreted_batch_ndims
        return self._finished(Independent, new, batch_shape)

    @property
    def has_rsample(self):
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self):
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self):
        count = self.reinterpreted_batch_ndims
        base = self.base_dist.support
        return constraints.independent(base, count) if count else base

    @property
    def mean(self):
        return self.base_dist.mean

    @property
    def mode(self):
        return self.base_dist.mode

    @property
    def variance(self):
        return self.base_dist.variance

    def sample(self, sample_shape=()):
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape=()):
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value):
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self):
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand=True):
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self):
        return f"{type(self).__name__}({self.base_dist!r}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """The values of a distribution after transforms, by the change of variables.

    If values of the transforms have more dims than those of the base, dims of the batch become dims
    of a value.
    """

    arg_constraints = {}

    def __init__(self, base_distribution, transforms, validate_args=None):
        if isinstance(transforms, Transform):
            transforms = [transforms]
        elif not isinstance(transforms, list):
            raise ValueError("transforms must be a Transform or list, but was "
                             f"{type(transforms).__name__}")
        if not all(isinstance(t, Transform) for t in transforms):
            raise ValueError("transforms must be a Transform or a list of Transforms")
        self.transforms = transforms
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        base_dims = len(base_distribution.event_shape)
        transform = ComposeTransform(self.transforms)
        if len(base_shape) < transform.domain.event_dim:
            raise ValueError("base_distribution needs to have shape with size at least "
                             f"{transform.domain.event_dim}, but got {tuple(base_shape)}.")
        shape = transform.forward_shape(base_shape)
        stretched = transform.inverse_shape(shape)
        if tuple(base_shape) != tuple(stretched):
            base_distribution = base_distribution.expand(
                tuple(stretched)[:len(stretched) - base_dims])
        taken = transform.domain.event_dim - base_dims
        if taken > 0:
            base_distribution = Independent(base_distribution, taken)
        self.base_dist = base_distribution
        change = transform.codomain.event_dim - transform.domain.event_dim
        event = max(transform.codomain.event_dim, base_dims + change)
        cut = len(shape) - event
        super().__init__(tuple(shape)[:cut], tuple(shape)[cut:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(TransformedDistribution, _instance)
        new.transforms = self.transforms
        transform = ComposeTransform(self.transforms)
        base_shape = tuple(transform.inverse_shape((*batch_shape, *self.event_shape)))
        new.base_dist = self.base_dist.expand(
            base_shape[:len(base_shape) - len(self.base_dist.event_shape)])
        return self._finished(TransformedDistribution, new, batch_shape)

    @constraints.dependent_property(is_discrete=False)
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        support, more = self.transforms[-1].codomain, len(self.event_shape)
        more -= support.event_dim
        return constraints.independent(support, more) if more > 0 else support

    @property
    def has_rsample(self):
        return self.base_dist.has_rsample

    def sample(self, sample_shape=()):
        with no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=()):
        return self._transformed(self.base_dist.rsample(sample_shape))

    def _transformed(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value):
        self._checked(value)
        dims, y, total = len(self.event_shape), value, 0.0
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            dims += transform.domain.event_dim - transform.codomain.event_dim
            total = total - sum_rightmost(transform.log_abs_det_jacobian(x, y),
                                          dims - transform.domain.event_dim)
            y = x
        return total + sum_rightmost(self.base_dist.log_prob(y),
                                     dims - len(self.base_dist.event_shape))

    def _by_sign(self, value):
        """The probability of being at most x, for a probability of being at most the transformed x,
        and the other way round: 1 - value if the transforms together fall."""
        sign = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        if isinstance(sign, int):
            return value if sign == 1 else 1 - value
        return sign * (value - 0.5) + 0.5

    def cdf(self, value):
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._by_sign(self.base_dist.cdf(value))

    def icdf(self, value):
        return self._transformed(self.base_dist.icdf(self._by_sign(value)))


class MixtureSameFamily(Distribution):
    """A mixture: a Categorical draws one of the components, which are along the last dim of the
    batch of a distribution."""

    arg_constraints = {}
    has_rsample = False

    def __init__(self, mixture_distribution, component_distribution, validate_args=None):
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an instance of "
                             "torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution need to be an instance of "
                             "torch.distributions.Distribution")
        mixture = mixture_distribution.batch_shape
        components = component_distribution.batch_shape
        for one, other in zip(reversed(mixture), reversed(components[:-1]), strict=False):
            if one != 1 and other != 1 and one != other:
                raise ValueError(f"`mixture_distribution.batch_shape` ({tuple(mixture)}) is not "
                                 "compatible with `component_distribution.batch_shape`"
                                 f"({tuple(components[:-1])})")
        given, there = mixture_distribution.logits.shape[-1], components[-1]
        if given != there:
            raise ValueError(f"`mixture_distribution component` ({given}) does not equal "
                             f"`component_distribution.batch_shape[-1]` ({there})")
        self._num_component = there
        event = component_distribution.event_shape
        self._event_ndims = len(event)
        super().__init__(broadcast_shapes(tuple(mixture), tuple(components[:-1])), event,
                         validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        new._component_distribution = self._component_distribution.expand(
            (*batch_shape, self._num_component))
        new._mixture_distribution = self._mixture_distribution.expand(tuple(batch_shape))
        new._num_component, new._event_ndims = self._num_component, self._event_ndims
        return self._finished(MixtureSameFamily, new, batch_shape)

    @constraints.dependent_property
    def support(self):
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self):
        """The distribution of the index of the component."""
        return self._mixture_distribution

    @property
    def component_distribution(self):
        """The components."""
        return self._component_distribution

    def _weights(self):
        probs = self.mixture_distribution.probs
        return probs.reshape((*probs.shape, *(1,) * self._event_ndims))

    @property
    def mean(self):
        return (self._weights() * self.component_distribution.mean).sum(-1 - self._event_ndims)

    @property
    def variance(self):
        # The mean variance within the components, and the variance of their means.
        weights, dim = self._weights(), -1 - self._event_ndims
        within = (weights * self.component_distribution.variance).sum(dim)
        apart = self.component_distribution.mean - self.mean.unsqueeze(dim)
        return within + (weights * apart.square()).sum(dim)

    def cdf(self, x):
        shares = self.component_distribution.cdf(x.unsqueeze(-1 - self._event_ndims))
        return (shares * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, x):
        self._checked(x)
        logs = self.component_distribution.log_prob(x.unsqueeze(-1 - self._event_ndims))
        return _C.logsumexp(logs + _C.log_softmax(self.mixture_distribution.logits, -1), -1)

    def sample(self, sample_shape=()):
        with no_grad():
            chosen = self.mixture_distribution.sample(sample_shape)
            values = self.component_distribution.sample(sample_shape)
            dim = len(sample_shape) + len(self.batch_shape)
            shape = (*chosen.shape, *(1,) * (self._event_ndims + 1))
            index = chosen.reshape(shape).expand(
                (*values.shape[:dim], 1, *self.event_shape))
            return values.gather(dim, index).squeeze(dim)

    def __repr__(self):
        return (f"MixtureSameFamily(\n  {self.mixture_distribution},\n  "
                f"{self.component_distribution})")
