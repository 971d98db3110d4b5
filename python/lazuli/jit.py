"""PyTorch's compiler of Python, whose place the recording takes: functions and modules are given
back as they are.

What is recorded is compiled at each sync, whoever calls it. Programs cannot be saved to files;
state_dict() has the parameters.
"""

import contextlib

from lazuli import _C
from lazuli._C.nn import Module

ScriptModule = Module


def script(obj=None, *arguments, **named):
    """Returns the function, class or module itself."""
    return obj


def trace(func, example_inputs=None, *arguments, **named):
    """Returns the function or module itself: each call is recorded, and its program comes from the
    cache."""
    return func


def _itself(name):
    def mark(fn=None, *arguments, **named):
        return fn if callable(fn) else lambda function: function

    mark.__name__, mark.__doc__ = name, "The function itself."
    return mark


export, freeze, ignore, optimize_for_inference, script_method, unused = map(
    _itself, ("export", "freeze", "ignore", "optimize_for_inference", "script_method", "unused"))


def is_scripting():
    """False."""
    return False


def is_tracing():
    """False."""
    return False


def annotate(the_type, the_value):
    """Returns the value."""
    return the_value


@contextlib.contextmanager
def fuser(name):
    """Does nothing: fusion is a pass."""
    yield


def _no_files(*arguments, **named):
    """Raises an error."""
    raise _C.UnimplementedError(
        "jit: programs cannot be saved to files; save(module.state_dict()) saves the parameters")


save = load = _no_files
