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
