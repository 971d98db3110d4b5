"""Gradient mode."""

import contextlib

from lazuli import _C


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


class enable_grad(_GradMode):
    """The opposite of no_grad, within one."""

    def __init__(self):
        super().__init__(True)
