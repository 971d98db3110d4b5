"""Gradient mode, and gradients without .grad."""

import contextlib

from lazuli import _C
from lazuli._C import Tensor


def _list(tensors):
    return [tensors] if tensors is None or isinstance(tensors, Tensor) else list(tensors)


def _gradients(given):
    return [] if given is None else _list(given)


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=False):
    """The gradients of the outputs with respect to the inputs, leaves or results, as a tuple; .grad stays as it is.

    grad_outputs are the gradients of the outputs: None, or one each, of which those of scalars may be None. With
    create_graph the gradients have a history of their own; it keeps what the forward pass saved, as retain_graph does.
    An input that the outputs do not depend on is a mistake, or None if allow_unused.
    """
    retain = create_graph if retain_graph is None else retain_graph
    return tuple(_C._grad(_list(outputs), _list(inputs), _gradients(grad_outputs), retain, create_graph, allow_unused))


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False):
    """Tensor.backward() of several tensors at once."""
    retain = create_graph if retain_graph is None else retain_graph
    _C._backward(_list(tensors), _gradients(grad_tensors), retain, create_graph)


class _GradMode(contextlib.ContextDecorator):
    def __init__(self, enabled):
        self._enabled = enabled
        self._saved = []

    def __enter__(self):
        self._saved.append(_C._set_grad_enabled(self._enabled))
        return self

    def __exit__(self, *exception):
        _C._set_grad_enabled(self._saved.pop())


class no_grad(_GradMode):
    """`with no_grad():` or `@no_grad()`: ops of this thread record no history meanwhile."""

    def __init__(self):
        super().__init__(False)


class set_grad_enabled(_GradMode):
    """Turns history on or off from here on; in a `with`, until its end."""

    def __init__(self, enabled):
        super().__init__(enabled)
        self._before = _C._set_grad_enabled(enabled)

    def __enter__(self):
        super().__enter__()
        self._saved[-1] = self._before
        return self


class enable_grad(_GradMode):
    """The opposite of no_grad, within one."""

    def __init__(self):
        super().__init__(True)
