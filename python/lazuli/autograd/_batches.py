"""Functions of one sample on batches: what vmap() and batched gradients record.

The function is called once, with tensors of one sample that have no elements. What it records is a
program, whose batched form is one operation for all samples (HloModule.vmap()). A gradient is that
of the function for each sample, batched in the same way, so derivatives of any order pass.
"""

import threading
from contextlib import contextmanager

from lazuli import _C
from lazuli.autograd.function import Function
from lazuli.autograd.grad_mode import enable_grad


class _Repeated(threading.local):
    depth = 0  # of functions that run again for a gradient


_repeated = _Repeated()


@contextmanager
def _again():
    """A context in which a function runs again, beside a call that had its effects."""
    _repeated.depth += 1
    try:
        yield
    finally:
        _repeated.depth -= 1


def is_repeated():
    """Whether a function runs again, so that its callbacks are not called a second time."""
    return _repeated.depth > 0


class _NoResults(Exception):
    """The function gives none, so there is nothing to record."""


def batched(function, tensors, size, randomness, name):
    """function(samples), a list of tensors, for all samples: (its results with a first dim for the
    samples, whether each of them depends on the sample)."""

    def record(*samples):
        results = function(*samples)
        if not results:
            raise _NoResults
        return results

    state = None if randomness == "error" else _C._draw_state()
    try:
        program, outside, depends = _C._batch_function(record, tensors, [True] * len(tensors),
                                                       size, randomness, name)
    except _NoResults:
        return [], []
    arguments = [*tensors, *outside]
    if _C.grad_enabled() and any(x.requires_grad for x in arguments):
        call = _Call(function, program, size, randomness, name, len(tensors), outside, state)
        return list(_Batched.apply(call, *arguments)), depends
    return program.call([x.detach() if x.requires_grad else x for x in arguments]), depends


class _Call:
    """A function that was batched, for its gradient: the arguments are `count` batches, then what
    the function used from outside."""

    def __init__(self, function, program, size, randomness, name, count, outside, state):
        self.function, self.program, self.size, self.name = function, program, size, name
        self.randomness, self.count, self.outside, self.state = randomness, count, outside, state

    def gradients(self, tensors, needed, cotangents):
        """For each argument its gradient, or None."""
        batches = tensors[:self.count]
        outputs = [i for i, c in enumerate(cotangents) if c is not None]
        wanted = [i for i, need in enumerate(needed) if need]
        found = []  # which gradients there are; known when the function was called
        transposed = _C._is_transposed()

        def sample(*values):
            inputs = [x.view_as(x) if x.requires_grad else x.detach().requires_grad_(need)
                      for x, need in zip(values[:self.count], needed, strict=False)]
            with enable_grad():
                with _again():
                    results = self.function(*inputs)
                pairs = [(results[i], c) for i, c in zip(outputs, values[self.count:], strict=True)
                         if results[i].requires_grad]
                sources = [inputs[i] if i < self.count else self.outside[i - self.count]
                           for i in wanted]
                # What a source from outside depends on has its part through the history outside.
                each = _C._partial_gradients([y for y, _ in pairs], sources, [c for _, c in pairs],
                                             transposed)
            found[:] = [i for i, g in zip(wanted, each, strict=True) if g is not None]
            return [g for g in each if g is not None]

        with _Draws(self.state):
            made, _ = batched(sample, [*batches, *(cotangents[i] for i in outputs)], self.size,
                               "error" if self.state is None else self.randomness, self.name)
        gradients = [None] * len(needed)
        for i, gradient in zip(found, made, strict=True):
            gradients[i] = gradient if i < self.count else gradient.sum(0)
        return gradients


class _Draws:
    """While it lives the generator draws again what it drew from this state on; None: it does not
    draw."""

    def __init__(self, state):
        self._state = state

    def __enter__(self):
        if self._state is not None:
            self._now = _C._draw_state()
            _C._set_draw_state(*self._state)

    def __exit__(self, *error):
        if self._state is not None:
            _C._set_draw_state(*self._now)


class _Batched(Function):
    @staticmethod
    def forward(ctx, call, *tensors):
        ctx.call = call
        ctx.save_for_backward(*tensors)
        results = call.program.call(list(tensors))
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*[y for y in results
                                      if not (y.is_floating_point() or y.is_complex())])
        return tuple(results)

    @staticmethod
    def backward(ctx, *cotangents):
        return None, *ctx.call.gradients(list(ctx.saved_tensors), ctx.needs_input_grad[1:],
                                         cotangents)
