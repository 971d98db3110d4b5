"""The base of all distributions.

Parameters and samples are checked against their constraints. Numbers are checked at once. The
elements of a tensor are known only in a run, so their check is a part of the program, and reading a
value of that run raises the ValueError, with the line of the call. A training step neither syncs
nor recompiles for it.
"""

import warnings

from lazuli import _C
from lazuli._C import Size, Tensor
from lazuli._numpy import np
from lazuli.autograd import no_grad, grad as gradients
from lazuli.distributions import constraints
from lazuli.distributions.utils import broadcast_all, is_number, lazy_property

__all__ = ["Distribution", "ExponentialFamily"]


def require(good, owner, what):
    """A check in the program: a run fails if an element of `good` is False."""
    _C.assert_async(good, owner, what)


class Distribution:
    """A probability distribution, or a batch of them.

    batch_shape is the shape of the batch of independent distributions, event_shape the shape of one
    value. Samples are [*sample_shape, *batch_shape, *event_shape].
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    _numbers = {}  # the parameters that were given as numbers, by name

    @staticmethod
    def set_default_validate_args(value):
        """Sets whether distributions check their arguments if they get no validate_args."""
        if value not in [True, False]:
            raise ValueError
        Distribution._validate_args = value

    def __init__(self, batch_shape=(), event_shape=(), validate_args=None):
        self._batch_shape, self._event_shape = Size(tuple(batch_shape)), Size(tuple(event_shape))
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _stretched(self, **parameters):
        """The parameters as tensors of one shape. Those that are numbers are remembered, since a
        constraint on a number is checked at once."""
        self._numbers = {name: v for name, v in parameters.items() if is_number(v)}
        return broadcast_all(*parameters.values())

    def _take(self, **parameters):
        """Sets the parameters, as tensors of one shape, and returns the shape."""
        made = self._stretched(**parameters)
        for name, value in zip(parameters, made, strict=True):
            setattr(self, name, value)
        return made[0].shape

    def _check_parameters(self):
        try:
            sets = self.arg_constraints
        except NotImplementedError:
            sets = {}
            warnings.warn(f"{type(self)} does not define `arg_constraints`. Please set "
                          "`arg_constraints = {}` or initialize the distribution with "
                          "`validate_args=False` to turn off validation.", stacklevel=3)
        for name, constraint in sets.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue  # it is computed from another parameter
            value = getattr(self, name)
            kind = type(self).__name__
            what = (f"Expected parameter {name} ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {kind} to satisfy the constraint "
                    f"{constraint!r}")
            number = self._numbers.get(name)
            if number is None or any(isinstance(v, Tensor) for v in vars(constraint).values()):
                require(constraint.check(value), kind, what)
            elif not constraint.check(np.asarray(number)).all():
                raise ValueError(f"{what}, but found invalid values:\n{number}")

    def expand(self, batch_shape, _instance=None):
        """The distribution with its batch stretched to a shape."""
        raise NotImplementedError

    @property
    def batch_shape(self):
        """The shape of the batch."""
        return self._batch_shape

    @property
    def event_shape(self):
        """The shape of one value."""
        return self._event_shape

    @property
    def arg_constraints(self):
        """The constraints of the parameters by name."""
        raise NotImplementedError

    @property
    def support(self):
        """The constraint that samples satisfy."""
        raise NotImplementedError

    @property
    def mean(self):
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self):
        """The most likely value."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self):
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self):
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape=()):
        """Numbers without a history, of shape [*sample_shape, *batch_shape, *event_shape]."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=()):
        """sample() as a function of the parameters, which have a gradient."""
        raise NotImplementedError

    def sample_n(self, n):
        """sample((n,)), which programs should call instead."""
        warnings.warn("sample_n will be deprecated. Use .sample((n,)) instead", UserWarning,
                      stacklevel=2)
        return self.sample((n,))

    def log_prob(self, value):
        """The logarithm of the density, or of the probability, at values."""
        raise NotImplementedError

    def cdf(self, value):
        """The probability of being at most a value."""
        raise NotImplementedError

    def icdf(self, value):
        """The inverse of cdf()."""
        raise NotImplementedError

    def enumerate_support(self, expand=True):
        """All values, along a new first dim; with expand=False the dims of the batch are 1."""
        raise NotImplementedError

    def entropy(self):
        """The entropy in nats."""
        raise NotImplementedError

    def perplexity(self):
        """exp() of the entropy."""
        return _C.exp(self.entropy())

    def _extended_shape(self, sample_shape=()):
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value):
        """Raises ValueError if the value is not a tensor or has another shape. Whether its elements
        are in the support is checked in the program."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        first = value.ndim - len(self._event_shape)
        if tuple(value.shape[max(first, 0):]) != tuple(self._event_shape):
            raise ValueError("The right-most size of value must match event_shape: "
                             f"{tuple(value.shape)} vs {tuple(self._event_shape)}.")
        given, wanted = tuple(value.shape), (*self._batch_shape, *self._event_shape)
        for i, j in zip(reversed(given), reversed(wanted), strict=False):
            if i != 1 and j not in (1, i):
                raise ValueError("Value is not broadcastable with batch_shape+event_shape: "
                                 f"{given} vs {wanted}.")
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(f"{type(self)} does not define `support` to enable sample validation. "
                          "Please initialize the distribution with `validate_args=False` to turn "
                          "off validation.", stacklevel=2)
            return
        assert support is not None
        kind = type(self).__name__
        require(support.check(value), kind,
                f"Expected value argument ({type(value).__name__} of shape {given}) to be within "
                f"the support ({support!r}) of the distribution {kind}")

    def _checked(self, value):
        """The value, validated unless the distribution was told not to."""
        if self._validate_args:
            self._validate_sample(value)
        return value

    def _enumerated(self, values, expand):
        """enumerate_support() from the values [n, *event_shape]."""
        values = values.reshape((-1, *(1,) * len(self._batch_shape), *self._event_shape))
        return values.expand((-1, *self._batch_shape, *self._event_shape)) if expand else values

    def _get_checked_instance(self, cls, _instance=None):
        """A new object for expand(). A subclass with another __init__ must have its own
        expand()."""
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(f"Subclass {type(self).__name__} of {cls.__name__} that "
                                      "defines a custom __init__ method must also define a custom "
                                      ".expand() method.")
        return self.__new__(type(self)) if _instance is None else _instance

    def _expand_into(self, new, shape, names):
        """Sets the parameters with these names that exist, expanded to a shape, in another
        object."""
        for name in names:
            if name in self.__dict__:
                setattr(new, name, self.__dict__[name].expand(tuple(shape)))

    def _expanded(self, cls, _instance, batch_shape, names, event=()):
        """expand() for a distribution of the parameters with these names that exist; event: the
        shape of one value of a parameter."""
        new = self._get_checked_instance(cls, _instance)
        self._expand_into(new, (*batch_shape, *event), names)
        return self._finished(cls, new, batch_shape)

    def _finished(self, cls, new, batch_shape):
        """The new object with its shapes; its parameters are not checked again."""
        super(cls, new).__init__(Size(tuple(batch_shape)), self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def __repr__(self):
        names = [k for k in self.arg_constraints if k in self.__dict__]
        values = [self.__dict__[k] for k in names]
        shown = ", ".join(f"{name}: {v.item() if v.numel() == 1 else v.shape}"
                          for name, v in zip(names, values, strict=True))
        return f"{type(self).__name__}({shown})"


class Located(Distribution):
    """A distribution with a parameter `loc`, which is its mean and mode unless a subclass has
    others."""

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc


class ExponentialFamily(Distribution):
    """Distributions of density exp(t(x) . theta - F(theta) + k(x)), whose entropy follows from the
    log normalizer F by its gradient."""

    @property
    def _natural_params(self):
        raise NotImplementedError

    def _log_normalizer(self, *natural_params):
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self):
        raise NotImplementedError

    def _normalizer_and_slopes(self):
        """(the natural parameters as leaves, their log normalizer, its gradients for them)."""
        parameters = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*parameters)
        return parameters, normalizer, gradients(normalizer.sum(), parameters, create_graph=True)

    def entropy(self):
        """The entropy in nats, by the gradient of the log normalizer."""
        parameters, normalizer, slopes = self._normalizer_and_slopes()
        result = normalizer - self._mean_carrier_measure
        for p, slope in zip(parameters, slopes, strict=True):
            result = result - (p * slope).reshape((*self._batch_shape, -1)).sum(-1)
        return result
