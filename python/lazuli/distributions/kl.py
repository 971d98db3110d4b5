"""Kullback-Leibler divergences of pairs of distributions, by their classes."""

import functools
import warnings

from lazuli.distributions.distribution import Distribution

__all__ = ["register_kl", "kl_divergence"]

_REGISTRY = {}  # functions by the registered pair of classes
_found = {}  # functions, or NotImplemented, by the pair of classes of a call


def register_kl(type_p, type_q):
    """A decorator for a function of p and q that returns the divergence for these classes and their
    subclasses. If several pairs of classes fit, the closest one counts."""
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type) or not issubclass(kind, Distribution):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def register(function):
        _REGISTRY[type_p, type_q] = function
        _found.clear()
        return function

    return register


@functools.total_ordering
class _Match:
    """A pair of classes, which is less if it is closer."""

    def __init__(self, *types):
        self.types = types

    def __eq__(self, other):
        return self.types == other.types

    def __le__(self, other):
        for mine, theirs in zip(self.types, other.types, strict=True):
            if not issubclass(mine, theirs):
                return False
            if mine is not theirs:
                break
        return True


def _dispatch(type_p, type_q):
    """The function of the closest pair that fits."""
    fits = [(p, q) for p, q in _REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not fits:
        return NotImplemented
    # Closest by p's class, and by q's.
    by_p = min(_Match(*pair) for pair in fits).types
    by_q = tuple(reversed(min(_Match(*reversed(pair)) for pair in fits).types))
    one, other = _REGISTRY[by_p], _REGISTRY[by_q]
    if one is not other:
        names = [f"{a.__name__}, {b.__name__}" for a, b in (by_p, by_q)]
        warnings.warn(f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please "
                      f"register_kl({names[0]}), register_kl({names[1]})", RuntimeWarning,
                      stacklevel=3)
    return one


def kl_divergence(p, q):
    """The mean of log p(x) - log q(x) over samples of p, of shape batch_shape.

    Raises NotImplementedError for pairs without a formula.
    """
    key = type(p), type(q)
    if key not in _found:
        _found[key] = _dispatch(*key)
    function = _found[key]
    if function is NotImplemented:
        raise NotImplementedError("No KL(p || q) is implemented for p type "
                                  f"{type(p).__name__} and q type {type(q).__name__}")
    return function(p, q)
