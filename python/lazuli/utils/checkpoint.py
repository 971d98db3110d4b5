"""Saves memory by computing twice: tensors that backward needs are computed again instead of being
kept."""

from lazuli import _C
from lazuli._C import Tensor


def _map(value, function):
    """The value with function() of each tensor in it, in order."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, dict):
        return {key: _map(item, function) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_map(item, function) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def checkpoint(function, *args, use_reentrant=None, context_fn=None, determinism_check="default",
               debug=False, preserve_rng_state=True, early_stop=True, **kwargs):
    """function(*args, **kwargs) without keeping what its ops save for backward.

    The function runs again when backward first needs what it would have saved: on the elements that
    its arguments had, with the same random numbers if preserve_rng_state, and behind a barrier that
    keeps the compiler from using the values of the first time. Everything else is as without, so
    use_reentrant and the arguments about what else may go wrong change nothing.
    """
    given, result = (args, kwargs), None

    def call(tensors):
        nonlocal result
        tensors = iter(tensors)
        arguments, named = _map(given, lambda tensor: next(tensors))
        result = function(*arguments, **named)
        found = []
        _map(result, found.append)
        return found

    inputs = []
    _map(given, inputs.append)
    made = iter(_C._checkpoint(call, inputs, preserve_rng_state))
    return _map(result, lambda tensor: next(made))


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """Calls the functions one after the other, in the given number of checkpoints; the last one
    keeps its tensors."""
    functions = list(functions)
    size = len(functions) // segments

    def run(first, last):
        def call(x):
            for function in functions[first:last]:
                x = function(x)
            return x
        return call

    for segment in range(segments - 1):
        input = checkpoint(run(segment * size, (segment + 1) * size), input,
                           use_reentrant=use_reentrant, **kwargs)
    return run((segments - 1) * size, len(functions))(input)
