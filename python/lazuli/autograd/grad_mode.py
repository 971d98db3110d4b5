"""Modes of recording histories, as contexts and decorators."""

import functools
import inspect

from lazuli import _C


class _Mode:
    """A mode: `with mode(...):`, `@mode(...)` for a function or generator, and `@mode` if it needs
    no argument."""

    def __new__(cls, *arguments, **named):
        if len(arguments) == 1 and not named and callable(arguments[0]):
            return cls()(arguments[0])
        return super().__new__(cls)

    def clone(self):
        return type(self)()

    def __call__(self, function):
        if inspect.isclass(function):
            raise TypeError(f"{type(self).__name__} decorates functions, not classes")
        if inspect.isgeneratorfunction(function):
            return self._of_generator(function)

        @functools.wraps(function)
        def call(*arguments, **named):
            with self.clone():
                return function(*arguments, **named)

        return call

    def _of_generator(self, function):
        """Runs the generator in the mode, but not its caller."""

        @functools.wraps(function)
        def generate(*arguments, **named):
            generator = function(*arguments, **named)
            step, given = generator.send, None
            while True:
                try:
                    with self.clone():
                        value = step(given)
                except StopIteration as end:
                    return end.value
                try:
                    step, given = generator.send, (yield value)
                except GeneratorExit:
                    generator.close()
                    raise
                except BaseException as error:
                    step, given = generator.throw, error

        return generate


class _GradMode(_Mode):
    enabled = True

    def __init__(self):
        self._before = []

    def __enter__(self):
        self._before.append(_C._set_grad_enabled(self.enabled))

    def __exit__(self, *exception):
        _C._set_grad_enabled(self._before.pop())


class no_grad(_GradMode):
    """Ops of this thread record no history until the end."""

    enabled = False


class enable_grad(_GradMode):
    """Turns history on again within no_grad."""


class set_grad_enabled(_Mode):
    """Turns history on or off from now on; in a `with`, until its end; as a decorator, during calls
    of the function."""

    def __new__(cls, mode):
        return object.__new__(cls)

    def __init__(self, mode):
        self.mode = bool(mode)
        self._before = _C._set_grad_enabled(self.mode)

    def __call__(self, function):
        _C._set_grad_enabled(self._before)
        return super().__call__(function)

    def clone(self):
        return type(self)(self.mode)

    def __enter__(self):
        _C._set_grad_enabled(self.mode)

    def __exit__(self, *exception):
        _C._set_grad_enabled(self._before)


class inference_mode(_Mode):
    """As no_grad, but the tensors made here can never take part in a history: an op that would save
    one for backward refuses it."""

    def __init__(self, mode=True):
        self.mode = mode
        self._before = []

    def clone(self):
        return type(self)(self.mode)

    def __enter__(self):
        self._before.append((_C._set_inference_mode(self.mode),
                             _C._set_grad_enabled(not self.mode)))

    def __exit__(self, *exception):
        inference, grad = self._before.pop()
        _C._set_inference_mode(inference)
        _C._set_grad_enabled(grad)


class detect_anomaly:
    """backward() raises an error if a gradient is NaN, which names the op that made it and the line
    that recorded the op. It applies to all threads. All gradients are checked at the end of a
    backward(), which syncs."""

    def __init__(self, check_nan=True):
        self.check_nan = check_nan

    def __enter__(self):
        self._before = _C._anomaly()
        _C._set_anomaly(True, self.check_nan)

    def __exit__(self, *exception):
        _C._set_anomaly(*self._before)


class set_detect_anomaly:
    """Turns detect_anomaly on or off from now on; in a `with`, until its end."""

    def __init__(self, mode, check_nan=True):
        self._before = _C._anomaly()
        _C._set_anomaly(mode, check_nan)

    def __enter__(self):
        pass

    def __exit__(self, *exception):
        _C._set_anomaly(*self._before)


def is_anomaly_enabled():
    """Whether detect_anomaly is on."""
    return _C._anomaly()[0]


def is_anomaly_check_nan_enabled():
    """Whether anomaly detection looks for NaN."""
    return _C._anomaly()[1]
