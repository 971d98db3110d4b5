"""Functions whose derivatives are written by users, as jax.custom_jvp and jax.custom_vjp have them;
and what changes how others are differentiated.

Arguments and results are trees of tensors. Derivatives of any order and in any mode come from the
one rule: what it computes is differentiated as it stands. Gradients reach the arguments alone, not
tensors that the function uses without getting them.
"""

import functools
import inspect

from lazuli import _C
from lazuli._C import Tensor
from lazuli.autograd._batches import _Draws
from lazuli.autograd.function import Function
from lazuli.autograd.grad_mode import enable_grad
from lazuli.func._runs import check_function, positions
from lazuli._tree import flatten, tree_map
from lazuli.utils.checkpoint import checkpoint as _checkpoint


def _is_smooth(x):
    return isinstance(x, Tensor) and (x.is_floating_point() or x.is_complex())


class _Node(Function):
    @staticmethod
    def forward(ctx, call, *tensors):
        results, kept = call.run(tensors)
        ctx.call = call
        ctx.save_for_backward(*tensors, *kept)
        ctx.mark_non_differentiable(*[y for y in results if not _is_smooth(y)])
        return tuple(results)

    @staticmethod
    def backward(ctx, *cotangents):
        saved = ctx.saved_tensors
        count = len(ctx.call.where)
        return None, *ctx.call.gradients(saved[:count], saved[count:], cotangents)


class _Call:
    """A call of a function with a rule: its arguments are apart by what is differentiated."""

    def __init__(self, rule, args):
        self.rule, self.args = rule, args
        self.fixed = positions(rule.kind, tuple(rule.nondiff), len(args)) if rule.nondiff else []
        self.chosen = [i for i in range(len(args)) if i not in self.fixed]
        self.leaves, self.structure = flatten(tuple(args[i] for i in self.chosen))
        self.where = [i for i, x in enumerate(self.leaves) if isinstance(x, Tensor)]
        self.state = _C._draw_state()

    def nondiff(self):
        return [self.args[i] for i in self.fixed]

    def tensors(self):
        return [self.leaves[i] for i in self.where]

    def primals(self, tensors):
        """The differentiated arguments with these tensors: a tuple."""
        leaves = list(self.leaves)
        for i, x in zip(self.where, tensors, strict=True):
            leaves[i] = x
        return self.structure.build(leaves)

    def arguments(self, tensors):
        """All arguments with these tensors."""
        args = list(self.args)
        for i, x in zip(self.chosen, self.primals(tensors), strict=True):
            args[i] = x
        return args

    def run(self, tensors):
        """(the results, tensors that the gradients need beside the arguments)."""
        output, kept = self.rule._run(self, self.arguments(tensors))
        self.outputs, self.output_structure = flatten(output)
        self.results = [i for i, y in enumerate(self.outputs) if isinstance(y, Tensor)]
        return [self.outputs[i] for i in self.results], kept

    def output(self, results):
        leaves = list(self.outputs)
        for i, y in zip(self.results, results, strict=True):
            leaves[i] = y
        return self.output_structure.build(leaves)

    def gradients(self, tensors, kept, cotangents):
        return self.rule._gradients(self, tensors, kept, cotangents)


class _Custom:
    """A function with a rule."""

    kind = None

    def __init__(self, fun, nondiff_argnums=()):
        check_function(self.kind, fun)
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.nondiff = ((nondiff_argnums,) if isinstance(nondiff_argnums, int)
                        else tuple(nondiff_argnums))

    def _named(self):
        return getattr(self.fun, "__name__", repr(self.fun))

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args, **kwargs):
        self._check_rule()
        bound = inspect.signature(self.fun).bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(f"{self.kind}: {self._named()} takes arguments by keyword alone, "
                            f"{list(bound.kwargs)}; a rule knows only positions")
        call = _Call(self, bound.args)
        tensors = call.tensors()
        if not (_C.grad_enabled() and any(x.requires_grad for x in tensors)):
            return self.fun(*bound.args)
        return call.output(_Node.apply(call, *tensors))


class custom_jvp(_Custom):
    """A function whose products with tangents its user defines:

        @custom_jvp
        def f(x, y):
            return x.sin() * y

        @f.defjvp
        def f_jvp(primals, tangents):
            (x, y), (dx, dy) = primals, tangents
            return f(x, y), x.cos() * dx * y + x.sin() * dy

    The rule returns the result and its tangent, which has the same structure. It must be linear in
    the tangents; gradients are its transpose. Tangents of what has no derivative, such as tensors
    of ints and numbers, are zeros. Arguments at nondiff_argnums come before primals and tangents,
    which leave them out.
    """

    kind = "custom_jvp"
    _jvp = None

    def defjvp(self, jvp, symbolic_zeros=False):
        """Sets the rule, and returns it. No tangents are symbolic."""
        if symbolic_zeros:
            raise RuntimeError("custom_jvp: there are no symbolic zeros; tangents are tensors")
        check_function("defjvp", jvp)
        self._jvp = jvp
        return jvp

    def defjvps(self, *jvps):
        """Sets the rule by one function for each argument, or None where the derivative is 0:
        jvp(tangent, output, *arguments) is the tangent of the output from this argument."""
        if self.nondiff:
            raise TypeError("custom_jvp: defjvps() does not go with nondiff_argnums; use defjvp()")

        def rule(primals, tangents):
            output = self(*primals)
            parts = [jvp(t, output, *primals) for jvp, t in zip(jvps, tangents, strict=True)
                     if jvp is not None]
            if not parts:
                return output, tree_map(_C.zeros_like, output)
            leaves, structure = flatten(parts[0])
            columns = [leaves, *(flatten(part)[0] for part in parts[1:])]
            return output, structure.build(sum(column[1:], column[0])
                                           for column in zip(*columns, strict=True))

        self._jvp = rule

    def _check_rule(self):
        if self._jvp is None:
            raise AttributeError(f"custom_jvp: {self._named()} has no rule; define it with defjvp")

    def _run(self, call, args):
        return self.fun(*args), []

    def _gradients(self, call, tensors, kept, cotangents):
        further = _C.grad_enabled()  # whether these gradients are differentiated
        with enable_grad():
            if not further:
                tensors = [x.detach() for x in tensors]
            vectors = [_C.zeros_like(x).requires_grad_(_is_smooth(x)) for x in tensors]
            tangents = [_C.zeros_like(_C.tensor(x)) if isinstance(x, (int, float, complex)) else x
                        for x in call.leaves]
            for i, vector in zip(call.where, vectors, strict=True):
                tangents[i] = vector
            with _Draws(call.state):
                made = self._jvp(*call.nondiff(), call.primals(tensors),
                                 call.structure.build(tangents))
            outputs = self._tangents(call, made)
        pairs = [(outputs[i], c) for i, c in zip(call.results, cotangents, strict=True)
                 if c is not None and isinstance(outputs[i], Tensor) and outputs[i].requires_grad]
        wanted = [v for v in vectors if v.requires_grad]
        found = iter([None] * len(wanted) if not pairs else
                     _C._grad([t for t, _ in pairs], wanted, [c for _, c in pairs], True, further,
                              True, _C._is_transposed()))
        return [next(found) if v.requires_grad else None for v in vectors]

    def _tangents(self, call, made):
        """The tangents of the results, as the rule made them."""
        if not isinstance(made, tuple) or len(made) != 2:
            raise TypeError(f"custom_jvp: the rule of {self._named()} must return a pair, the "
                            f"result and its tangent, not {type(made).__name__}")
        outputs = call.output_structure.leaves(made[1])
        if outputs is None:
            raise TypeError(f"custom_jvp: the rule of {self._named()} must return a tangent with "
                            f"the structure of the result, {call.output_structure}, not "
                            f"{flatten(made[1])[1]}")
        for i in call.results:
            y, t = call.outputs[i], outputs[i]
            if _is_smooth(y) and (not isinstance(t, Tensor) or t.shape != y.shape):
                what = tuple(t.shape) if isinstance(t, Tensor) else type(t).__name__
                raise TypeError(f"custom_jvp: the rule of {self._named()} must return a tangent "
                                f"of the result's shape, {tuple(y.shape)}, not {what}")
        return outputs


class custom_vjp(_Custom):
    """A function whose products with cotangents its user defines:

        @custom_vjp
        def f(x, y):
            return x.sin() * y

        def f_fwd(x, y):
            return f(x, y), (x.cos(), x.sin(), y)

        def f_bwd(residuals, ct):
            cos_x, sin_x, y = residuals
            return cos_x * ct * y, sin_x * ct

        f.defvjp(f_fwd, f_bwd)

    f_fwd takes the arguments of f and returns (result, residuals); it runs where a gradient is
    wanted. f_bwd takes the residuals, a tree, and the cotangent of the result, and returns a tuple
    with a gradient for each argument, which may be None for zeros. Arguments at nondiff_argnums
    come before the residuals, and get no gradient.
    """

    kind = "custom_vjp"
    _fwd = _bwd = None

    def defvjp(self, fwd, bwd, symbolic_zeros=False, optimize_remat=False):
        """Sets the rules. Residuals are always kept, and no cotangents are symbolic."""
        if symbolic_zeros:
            raise RuntimeError("custom_vjp: there are no symbolic zeros; cotangents are tensors")
        check_function("defvjp", fwd)
        check_function("defvjp", bwd)
        self._fwd, self._bwd = fwd, bwd

    def _check_rule(self):
        if self._bwd is None:
            raise AttributeError(f"custom_vjp: {self._named()} has no rules; define them with "
                                 "defvjp")

    def _forward(self, args):
        made = self._fwd(*args)
        if not isinstance(made, tuple) or len(made) != 2:
            raise TypeError(f"custom_vjp: the forward rule of {self._named()} must return a pair, "
                            f"the result and residuals, not {type(made).__name__}")
        return made

    def _run(self, call, args):
        output, residuals = self._forward(args)
        call.residuals, call.residual_structure = flatten(residuals)
        kept = [r for r in call.residuals if isinstance(r, Tensor)]
        call.residuals = [None if isinstance(r, Tensor) else (r,) for r in call.residuals]
        return output, kept

    def _gradients(self, call, tensors, kept, cotangents):
        if _C.grad_enabled():  # derivatives of the gradients also go through the residuals
            with _Draws(call.state):
                residuals = self._forward(call.arguments(tensors))[1]
        else:
            kept = iter(kept)
            residuals = call.residual_structure.build(
                next(kept) if r is None else r[0] for r in call.residuals)
        given = list(call.outputs)
        for i, cotangent in zip(call.results, cotangents, strict=True):
            given[i] = cotangent
        found = self._bwd(*call.nondiff(), residuals, call.output_structure.build(given))
        if not isinstance(found, tuple) or len(found) != len(call.chosen):
            what = (f"{len(found)}" if isinstance(found, (tuple, list))
                    else f"a {type(found).__name__}")
            raise TypeError(f"custom_vjp: the backward rule of {self._named()} must return a "
                            f"tuple of {len(call.chosen)} gradients, not {what}")
        leaves = [leaf for argument, gradient in zip(call.chosen, found, strict=True)
                  for leaf in self._leaves(call.args[argument], gradient, argument)]
        return [leaves[i] for i in call.where]

    def _leaves(self, argument, gradient, position):
        structure = flatten(argument)[1]
        if gradient is None:
            return [None] * structure.count()
        leaves = structure.leaves(gradient)
        if leaves is None:
            raise TypeError(f"custom_vjp: the backward rule of {self._named()} must return a "
                            f"gradient with the structure of argument {position}, {structure}, "
                            f"not {flatten(gradient)[1]}")
        return leaves


def stop_gradient(x):
    """The tree of tensors without its history: to derivatives they are constants."""
    return tree_map(lambda leaf: leaf.detach() if isinstance(leaf, Tensor) else leaf, x)


def checkpoint(fun, *, prevent_cse=True, policy=None, static_argnums=()):
    """The function that computes what fun does, and keeps only its arguments for the gradient,
    which computes the rest again (lazuli.utils.checkpoint). prevent_cse and static_argnums change
    nothing: the second computation is never merged with the first, and arguments may be of any
    kind."""
    check_function("checkpoint", fun)
    if policy is not None:
        raise RuntimeError("checkpoint: takes no policy; lazuli.utils.checkpoint has contexts that "
                           "say what is kept")

    @functools.wraps(fun)
    def call(*args, **kwargs):
        return _checkpoint(fun, *args, use_reentrant=False, **kwargs)

    return call


remat = checkpoint
