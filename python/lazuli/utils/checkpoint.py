"""Saves memory by computing twice: tensors that backward needs are computed again instead of being
kept."""

import contextlib

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


class CheckpointError(RuntimeError):
    """A function that did something else when it was called again."""


def noop_context_fn():
    """Two contexts that do nothing: context_fn's default."""
    return contextlib.nullcontext(), contextlib.nullcontext()


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled):
    """Within it, checkpoints describe what differs at length, or not, whatever their debug= says:
    errors here always do."""
    yield


@contextlib.contextmanager
def set_checkpoint_early_stop(enable):
    """Within it, the second call may end once it has all it has to compute: what is left over is
    never run here, as nothing reads it."""
    yield


def _described(tensors):
    return [(tuple(x.shape), x.dtype, str(x.device)) for x in tensors]


def checkpoint(function, *args, use_reentrant=None, context_fn=noop_context_fn,
               determinism_check="default", debug=False, preserve_rng_state=True, early_stop=True,
               **kwargs):
    """function(*args, **kwargs) without keeping what its ops save for backward.

    The function runs again when backward first needs what it would have saved: on the elements that
    its arguments had, with the same random numbers if preserve_rng_state, and behind a barrier that
    keeps the compiler from using the values of the first time. context_fn gives two contexts, of
    the first call and of the second. Unless determinism_check is "none", CheckpointError says that
    the second call gave tensors of other shapes, dtypes or devices. use_reentrant, debug and
    early_stop change nothing.
    """
    if determinism_check not in ("default", "none"):
        raise ValueError("determinism_check should be one of ('default', 'none'), but got "
                         f"{determinism_check}")
    given, result, first = (args, kwargs), None, None
    contexts = list((context_fn or noop_context_fn)())
    narrow = _C._autocast_dtype()

    def call(tensors):
        nonlocal result, first
        tensors = iter(tensors)
        arguments, named = _map(given, lambda tensor: next(tensors))
        is_second = first is not None
        outer = _C._autocast_dtype()
        _C._set_autocast_dtype(narrow)
        try:
            with contexts[is_second]:
                result = function(*arguments, **named)
        finally:
            _C._set_autocast_dtype(outer)
        found = []
        _map(result, found.append)
        if is_second and determinism_check != "none" and _described(found) != first:
            raise CheckpointError("checkpoint: the function gave other tensors when it was called "
                                  f"again: {_described(found)}, not {first}")
        first = _described(found)
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
