"""jit(function): calls of the function are replayed, as those of compile(); also a decorator.

PyTorch's compiler of Python has these names, too: script() and trace() give functions and modules
back as they are, since what is recorded is compiled at each sync, whoever calls it. Programs cannot
be saved to files; state_dict() has the parameters.
"""

import contextlib
import sys
import types

from lazuli import _C, _replay
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


class _Jit(types.ModuleType):
    """This module, which is a function as well."""

    def __call__(self, function=None, *, fullgraph=False, donate_argnames=()):
        """compile() with these options."""
        return _replay.compile(function, fullgraph=fullgraph, donate_argnames=donate_argnames)


sys.modules[__name__].__class__ = _Jit
