"""Graphs of modules as PyTorch's fx has them, which lazuli does not make; so that programs which
import this module run up to there.

A program is recorded as it runs: lazuli.hlo.HloModule.trace() gives it as a module to read and
rewrite, lazuli.debug.graph_text() as text.
"""

from lazuli import _C
from lazuli._C.nn import Module


def _none(what):
    raise _C.UnimplementedError(
        f"fx: {what} is not there, as nothing is traced by symbols; lazuli.hlo.HloModule.trace() "
        "makes a module of a function, to read and rewrite, and lazuli.debug.graph_text() shows "
        "what is recorded")


class _Missing:
    def __init__(self, *arguments, **named):
        _none(type(self).__name__)


class Graph(_Missing):
    """Calling it raises an error; no object is an instance."""


class Node(_Missing):
    """Calling it raises an error; no object is an instance."""


class Proxy(_Missing):
    """Calling it raises an error; no object is an instance."""


class Interpreter(_Missing):
    """Calling it raises an error; no object is an instance."""


class Transformer(_Missing):
    """Calling it raises an error; no object is an instance."""


class Tracer(_Missing):
    """Calling it raises an error; no object is an instance."""


class GraphModule(Module):
    """Calling it raises an error; no module is an instance."""

    def __init__(self, *arguments, **named):
        _none("GraphModule")


def symbolic_trace(root, concrete_args=None):
    """Raises an error."""
    _none("symbolic_trace()")


def wrap(fn_or_name):
    """Returns the function itself."""
    return fn_or_name
