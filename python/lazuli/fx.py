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
    """An error; nothing is one."""


class Node(_Missing):
    """An error; nothing is one."""


class Proxy(_Missing):
    """An error; nothing is one."""


class Interpreter(_Missing):
    """An error; nothing is one."""


class Transformer(_Missing):
    """An error; nothing is one."""


class Tracer(_Missing):
    """An error; nothing is one."""


class GraphModule(Module):
    """An error; no module is one."""

    def __init__(self, *arguments, **named):
        _none("GraphModule")


def symbolic_trace(root, concrete_args=None):
    """An error."""
    _none("symbolic_trace()")


def wrap(fn_or_name):
    """The function itself, which traces by symbols would leave whole."""
    return fn_or_name
