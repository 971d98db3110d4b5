"""Runs of functions under a transform: how arguments are differentiated, and which results keep a
history.

An argument that is differentiated is replaced by a new leaf, which is one of the run's own, or by a
view if the caller's tensor has a history that counts. The caller's flags and gradients do not
change. Results have a history if there is another transform around this one, or if they depend on
tensors from outside that require gradients: then the outer transform or the caller may
differentiate them.
"""

import threading
from contextlib import contextmanager

from lazuli import _C
from lazuli._C import Tensor
from lazuli.autograd._jacobians import transposable
from lazuli.autograd.grad_mode import inference_mode
from lazuli._tree import flatten, tree_map


class _State(threading.local):
    def __init__(self):
        self.depth = 0  # how many transforms run their functions now
        self.own = {}  # the leaves that these transforms made, by identity


_state = _State()


@contextmanager
def level():
    """A context in which a transform runs its function, with histories on. `as` receives whether
    results may have a history: no_grad() and inference_mode() around a transform turn off only
    the history of its results."""
    recorded = _C.grad_enabled()
    _state.depth += 1
    try:
        with inference_mode(False):  # and with histories
            yield recorded
    finally:
        _state.depth -= 1
        if not _state.depth:
            _state.own = {}


def _leaves_elsewhere(tensors, own):
    """Whether the history of the tensors begins at a leaf that is not one of `own`."""
    if any(t.is_leaf and t.requires_grad and hash(t) not in own for t in tensors):
        return True
    seen, todo = set(), [_C._grad_fn(t) for t in tensors]
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaf = node.variable()
        if leaf is not None and hash(leaf) not in own:
            return True
        todo += [source for source, _ in node.edges()]
    return False


def _finished(tensors, kept, own, nested):
    """Results as the caller gets them. They have no history unless it is kept; outside of all
    transforms it must also begin at a leaf that is not one of the transform's own."""
    if not kept:
        return [t.detach() if t.requires_grad else t for t in tensors]
    if nested or not own:
        return list(tensors)
    return [t.detach() if t.requires_grad and not _leaves_elsewhere([t], own) else t
            for t in tensors]


ALL = object()  # argnums of transforms that differentiate for all arguments


def positions(name, argnums, count):
    """argnums as positions of `count` arguments."""
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"{name}: argnums must be an int or a tuple of ints, not "
                           f"{type(argnums).__name__}")
    given = argnums if isinstance(argnums, tuple) else (argnums,)
    if not given:
        raise RuntimeError(f"{name}: argnums is an empty tuple")
    for n in given:
        if not isinstance(n, int):
            raise RuntimeError(f"{name}: argnums must hold ints, not {type(n).__name__}")
        if not -count <= n < count:
            raise RuntimeError(f"{name}: argnums has {n}, but there are {count} positional "
                               "arguments")
    found = [n % count for n in given]
    if len(set(found)) < len(found):
        raise RuntimeError(f"{name}: argnums names an argument twice: {argnums}")
    return found


def _is_smooth(x):
    return x.is_floating_point() or x.is_complex()


def check_function(name, func):
    if not callable(func):
        raise TypeError(f"{name}: takes a function, not {type(func).__name__}")


class Run:
    """A run of func(*args, **kwargs) in a level(), differentiated for the arguments at `argnums`,
    or for ALL. With has_aux the function returns (output, aux)."""

    def __init__(self, name, recorded, func, args, kwargs=None, argnums=ALL, has_aux=False,
                 not_floats=RuntimeError, not_tensors=ValueError, allow_int=False):
        self._name, self._recorded, self._own = name, recorded, _state.own
        self._nested = _state.depth > 1
        chosen = range(len(args)) if argnums is ALL else positions(name, argnums, len(args))
        several = argnums is ALL or isinstance(argnums, tuple)
        leaves, self.arguments = flatten(tuple(args[i] for i in chosen) if several
                                         else args[chosen[0]])
        for x in leaves:
            self._check_argument(x, not_floats, not_tensors, allow_int)
        self.inputs = [self._differentiated(x) for x in leaves]
        used = self.arguments.build(self.inputs)
        by_place = dict(zip(chosen, used if several else (used,), strict=True))
        versions = [x._version for x in self.inputs]
        value = func(*(by_place[i] if i in by_place else tree_map(self._constant, x)
                       for i, x in enumerate(args)),
                     **{key: tree_map(self._constant, x) for key, x in (kwargs or {}).items()})
        if versions != [x._version for x in self.inputs]:
            raise RuntimeError(f"{name}: the function changes in place an argument that it is "
                               "differentiated for; clone() it there")
        self._take(value, has_aux)

    def _check_argument(self, x, not_floats, not_tensors, allow_int):
        if not isinstance(x, Tensor):
            raise not_tensors(f"{self._name}: takes tensors to differentiate for, not "
                              f"{type(x).__name__}")
        if not (_is_smooth(x) or allow_int):
            raise not_floats(f"{self._name}: only tensors of a floating-point or complex dtype "
                             f"are differentiated for, not {x.dtype}")

    def _differentiated(self, x):
        if not _is_smooth(x):
            return x.detach()
        if self._recorded and x.requires_grad:
            return x.view_as(x)
        return self.own(x.detach())

    def for_all_inputs(self, gradients_for, outer=()):
        """gradients_for(inputs) that have one, and zeros for those of integers: for each input a
        tensor of the outer dims and its own."""
        found = iter(gradients_for([x for x in self.inputs if _is_smooth(x)]))
        return [next(found) if _is_smooth(x) else x.new_zeros((*outer, *x.shape))
                for x in self.inputs]

    def own(self, x):
        """Makes x a leaf of this run, and returns it."""
        self._own[hash(x)] = x
        return x.requires_grad_()

    def _constant(self, x):
        """A tensor that is not differentiated: the same memory without the caller's flags, which
        would change if the function wrote a value with a history to it."""
        return x if not isinstance(x, Tensor) or self._recorded and x.requires_grad else x.detach()

    def _take(self, value, has_aux):
        self.aux = None
        if has_aux:
            if not isinstance(value, tuple) or len(value) != 2:
                raise RuntimeError(f"{self._name}: with has_aux the function returns a tuple "
                                   "(output, aux)")
            value, self.aux = value
        self.value = value
        self.outputs, self.structure = flatten(value)
        self.kept = self._recorded and (self._nested or _leaves_elsewhere(
            [x for x in self.outputs if isinstance(x, Tensor)], self._own))

    def check_outputs(self):
        """Raises unless the function's result is a tree of tensors."""
        if not self.outputs or self.value is None:
            raise RuntimeError(f"{self._name}: the function returns no tensor but {self.value}")
        for x in self.outputs:
            if not isinstance(x, Tensor):
                raise RuntimeError(f"{self._name}: the function must return tensors, not "
                                   f"{type(x).__name__}")

    def results(self, has_aux, *others):
        """(the function's output, the others), and aux with has_aux, as the caller gets them."""
        output = self.structure.build(self.finished(self.outputs))
        return (output, *others, self.finished_aux()) if has_aux else (output, *others)

    def finished_aux(self):
        return tree_map(lambda x: self.finished([x])[0] if isinstance(x, Tensor) else x, self.aux)

    def finished(self, tensors, kept=None):
        """Results of the run in its level, as the caller gets them."""
        return _finished(tensors, self.kept if kept is None else kept, self._own, self._nested)

    def later(self, weights, product, create_graph=None):
        """The results of product(kept), which are products with these weights, as the caller gets
        them after the run has left its level. kept: whether they keep a history."""
        nested = _state.depth > 0
        if nested:  # leaves of this run are also those of the transforms around the call
            _state.own.update(self._own)
        kept = create_graph
        if kept is None:
            kept = _C.grad_enabled() and (nested or self.kept
                                          or any(w.requires_grad for w in weights))
        return _finished(product(kept), kept, self._own, nested)

    def weights(self, what, tree, structure, like, of):
        """The leaves of a tree of vectors to multiply with. The tree must have the structure, and
        the leaves the shapes, of the outputs or arguments."""
        found = structure.leaves(tree)
        if found is None:
            raise RuntimeError(f"{self._name}: {what} must have the structure of {of}, "
                               f"{structure}, not {flatten(tree)[1]}")
        for w, x in zip(found, like, strict=True):
            if not isinstance(w, Tensor):
                raise RuntimeError(f"{self._name}: {what} must be tensors, not "
                                   f"{type(w).__name__}")
            if w.shape != x.shape:
                raise RuntimeError(f"{self._name}: {what} must have the shapes of {of}: "
                                   f"{tuple(x.shape)}, not {tuple(w.shape)}")
        return found

    def transposed(self):
        """(vectors with the shapes of the outputs that depend on inputs, their products with the
        Jacobian matrix). The derivative of the products for the vectors is the matrix."""
        vectors = [self.own(_C.zeros_like(o).detach()) for o in self.outputs if o.requires_grad]
        products = transposable([o for o in self.outputs if o.requires_grad], self.inputs, vectors)
        return vectors, products
