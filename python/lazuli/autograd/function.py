"""Functions with gradients written by users."""

import functools

from lazuli import _C
from lazuli._C import Tensor
from lazuli.autograd.grad_mode import no_grad


class FunctionCtx:
    """Carries data from forward() of a Function to backward(); it accepts any attributes, too."""

    def __init__(self):
        self._saved, self._forward, self._dirty, self._plain = (), (), (), ()
        self._materialize = True
        self._node = None  # while backward() or jvp() runs
        self._pushes = False  # whether that is jvp()
        self._count = 0  # of the node's tensors that are saved for backward()
        self.needs_input_grad = ()

    def save_for_backward(self, *tensors):
        """Keeps arguments, results or other tensors for backward(), which reads them from
        saved_tensors."""
        self._saved = _checked("save_for_backward", tensors)

    @property
    def saved_tensors(self):
        if self._node is None:
            return tuple(self._saved)
        saved = self._node.saved()
        return tuple(saved[self._count:] if self._pushes else saved[:self._count])

    saved_variables = saved_tensors

    def save_for_forward(self, *tensors):
        """Keeps tensors for jvp(), which reads them from saved_tensors."""
        self._forward = _checked("save_for_forward", tensors)

    def mark_dirty(self, *inputs):
        """Marks arguments that forward() changed in place; it must return them."""
        self._dirty = inputs

    def mark_non_differentiable(self, *outputs):
        """Marks results that have no gradient."""
        self._plain = outputs

    def set_materialize_grads(self, value):
        """Sets whether backward() gets zeros, or None, for unused results."""
        self._materialize = value


BackwardCFunction = FunctionCtx


def _checked(name, tensors):
    for i, tensor in enumerate(tensors):
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"{name} can only save variables, but argument {i} is of type "
                            f"{type(tensor).__name__}")
    return tensors


def _among(tensor, tensors):
    return any(isinstance(other, Tensor) and other.is_same(tensor) for other in tensors)


class Function:
    """A function with a gradient of its own:

        class Exp(lz.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                y = x.exp()
                ctx.save_for_backward(y)
                return y

            @staticmethod
            def backward(ctx, dy):
                y, = ctx.saved_tensors
                return dy * y

        y = Exp.apply(x)

    forward() runs without history. backward() takes a gradient for each result and gives one for
    each argument, None for those that are not tensors; what it records under create_graph has a
    history, so second derivatives come by themselves. A setup_context(ctx, inputs, output) may take
    what concerns ctx out of forward(), which then has no ctx.

    Forward mode is the transpose of backward(), unless there is a jvp(). That takes a tangent for
    each argument, None for those that are not tensors, and gives one for each result.
    """

    def __init__(self, *arguments, **named):
        raise RuntimeError(f"{type(self).__name__} is not made or called: its methods are static; "
                           f"use {type(self).__name__}.apply()")

    @staticmethod
    def forward(*arguments, **named):
        raise NotImplementedError("a Function must have a forward()")

    @staticmethod
    def setup_context(ctx, inputs, output):
        raise NotImplementedError("setup_context is not written")

    @staticmethod
    def backward(ctx, *grad_outputs):
        raise NotImplementedError("a Function must have a backward() or vjp() to be differentiated")

    vjp = backward

    @staticmethod
    def jvp(ctx, *grad_inputs):
        raise NotImplementedError("a Function that is differentiated forward must have a jvp()")

    @classmethod
    def apply(cls, *arguments, **named):
        """The results of forward() for the arguments, with backward() as their history."""
        ctx = FunctionCtx()
        ctx.needs_input_grad = tuple(isinstance(a, Tensor) and a.requires_grad for a in arguments)
        apart = cls.setup_context is not Function.setup_context
        with no_grad():
            if apart:
                output = cls.forward(*arguments, **named)
                cls.setup_context(ctx, arguments, output)
            else:
                output = cls.forward(ctx, *arguments, **named)
        results = list(output) if isinstance(output, tuple) else [output]
        _check_dirty(cls, ctx, arguments, results)
        where = [i for i, result in enumerate(results) if isinstance(result, Tensor)]
        tensors = [results[i] for i in where]
        if not (_C.grad_enabled() and any(ctx.needs_input_grad)):
            made = [t.detach() if _among(t, arguments) and not _among(t, ctx._dirty) else t
                    for t in tensors]
        else:
            made = cls._record(ctx, arguments, results, where, tensors)
        for i, tensor in zip(where, made, strict=True):
            if not _among(tensor, [results[i]]):
                results[i] = tensor
        return tuple(results) if isinstance(output, tuple) else results[0]

    @classmethod
    def _record(cls, ctx, arguments, results, where, tensors):
        call = cls.backward if cls.backward is not Function.backward else cls.vjp
        tangents = _Tangents(cls, ctx, arguments) if cls.jvp is not Function.jvp else None

        def backward(node, gradients):
            given = [None] * len(results)
            for i, gradient in zip(where, gradients, strict=True):
                given[i] = gradient
            ctx._node = node
            try:
                if tangents is not None and _C._is_transposed():
                    return tangents.transposed(given)
                found = call(ctx, *given)
            finally:
                ctx._node = None
            return found if isinstance(found, (tuple, list)) else (found,)

        saved = [*ctx._saved, *(ctx._forward if tangents is not None else ())]
        ctx._count, ctx._saved, ctx._forward = len(ctx._saved), (), ()
        return _C._custom(f"{cls.__name__}Backward", backward,
                          [a if isinstance(a, Tensor) else None for a in arguments], tensors,
                          [_among(t, ctx._dirty) for t in tensors],
                          [not _among(t, ctx._plain) for t in tensors], saved, ctx._materialize)


class _Tangents:
    """What jvp() of a Function makes of tangents, transposed."""

    def __init__(self, cls, ctx, arguments):
        self._cls, self._ctx = cls, ctx
        self._like = [(a.shape, a.dtype, a.device) if isinstance(a, Tensor) else None
                      for a in arguments]

    def _vector(self, like, needed):
        """A tangent that is zero; None for an argument that is not a tensor, or that has none."""
        if like is None or not (needed or self._ctx._materialize):
            return None
        shape, dtype, device = like
        return _C.zeros(shape, dtype=dtype, device=device).requires_grad_(needed)

    def transposed(self, cotangents):
        """The gradients of the arguments for cotangents that are zeros: the derivatives of these
        gradients for the cotangents are what jvp() gives."""
        ctx = self._ctx
        vectors = [self._vector(like, needed)
                   for like, needed in zip(self._like, ctx.needs_input_grad, strict=True)]
        ctx._pushes = True
        try:
            made = self._cls.jvp(ctx, *vectors)
        finally:
            ctx._pushes = False
        made = made if isinstance(made, (tuple, list)) else (made,)
        if len(made) != len(cotangents):
            raise RuntimeError(f"function {self._cls.__name__}: jvp returned an incorrect number "
                               f"of tangents (expected {len(cotangents)}, got {len(made)})")
        pairs = [(t, c) for t, c in zip(made, cotangents, strict=True)
                 if c is not None and isinstance(t, Tensor) and t.requires_grad]
        for t, c in pairs:
            if t.shape != c.shape:
                raise RuntimeError(f"function {self._cls.__name__}: jvp returned a tangent of "
                                   f"shape {tuple(t.shape)} for a result of shape "
                                   f"{tuple(c.shape)}")
        wanted = [i for i, needed in enumerate(ctx.needs_input_grad) if needed]
        found = [None] * len(vectors)
        if pairs and wanted:
            products = _C._grad([t for t, _ in pairs], [vectors[i] for i in wanted],
                                [c for _, c in pairs], True, True, True, True)
            for i, product in zip(wanted, products, strict=True):
                found[i] = product
        return tuple(found)


def _check_dirty(cls, ctx, arguments, results):
    for tensor in ctx._dirty:
        if not _among(tensor, results):
            raise RuntimeError(f"{cls.__name__}: some elements marked as dirty during the forward "
                               "method were not returned as output. The inputs that are modified "
                               "inplace must all be outputs of the Function.")


class _Twice(Function):
    """Returns the tensors with a history that cannot be differentiated."""

    @staticmethod
    def forward(ctx, *tensors):
        return tuple(t.detach() for t in tensors)

    @staticmethod
    def backward(ctx, *gradients):
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable")


def once_differentiable(backward):
    """A decorator for a backward() that records no history: differentiating its results is an
    error."""

    @functools.wraps(backward)
    def call(ctx, *gradients):
        with no_grad():
            found = backward(ctx, *gradients)
        if not _C.grad_enabled() or not any(isinstance(g, Tensor) and g.requires_grad
                                            for g in gradients):
            return found
        several = list(found) if isinstance(found, (tuple, list)) else [found]
        where = [i for i, g in enumerate(several) if isinstance(g, Tensor)]
        refused = _Twice.apply(*[several[i].detach().requires_grad_() for i in where])
        for i, gradient in zip(where, refused, strict=True):
            several[i] = gradient
        return tuple(several) if isinstance(found, (tuple, list)) else several[0]

    return call


class InplaceFunction(Function):
    """Function."""
