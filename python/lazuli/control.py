"""Control flow on the device: loops and branches whose functions are traced once and compiled.

The functions have JAX's names and signatures; lazuli.cond, lazuli.while_loop, lazuli.scan and
lazuli.associative_scan have PyTorch's.

    import lazuli as lz
    from lazuli import control

    def step(h, x):
        h = (h @ w + x).tanh()
        return h, h.sum()

    h, sums = control.scan(step, h0, xs)     # one program for all steps

A function gets tensors without elements, and records what it does with them and with tensors from
outside. Nothing can be read inside, and tensors from outside cannot be changed there. Arguments and
results are tensors, numbers, None, or tuples, lists and dicts of them, or objects of classes that
are registered (lazuli.tree). A loop or branch is one operation, pending as any other, and may
contain others. What a check finds inside, such as an index out of range, is an error of the run.

Random numbers inside come from a generator of the operation's own, whose seed is one block of four
numbers of the default generator: the default generator moves on by one block, or by two in a
while_loop whose functions both draw. Each step draws other numbers.
"""

import os

from lazuli import _C
from lazuli._C import Tensor
from lazuli._tensor import tensor
from lazuli._tree import flatten
from lazuli.func._vmap import vmap

__all__ = ["associative_scan", "cond", "fori_loop", "map", "scan", "switch", "while_loop"]


class _Tree:
    """The structure of a tree with tensors, numbers and None at its leaves. Numbers become tensors
    on the device of its tensors; without one, on that of another tree; without that, on the
    default device."""

    def __init__(self, name, what, tree, beside=None):
        leaves, self.structure = flatten(tree)
        self.holes = [leaf is None for leaf in leaves]
        self.device = next((leaf.device for leaf in leaves if isinstance(leaf, Tensor)),
                           beside and beside.device)
        self.tensors = [_tensor(name, what, leaf, self.device) for leaf in leaves
                        if leaf is not None]

    def build(self, tensors):
        tensors = iter(tensors)
        return self.structure.build([None if hole else next(tensors) for hole in self.holes])

    def paths(self):
        """Where each tensor is in the tree."""
        return [path for path, hole in zip(self.structure.paths(), self.holes, strict=True)
                if not hole]

    def __eq__(self, other):
        return self.structure == other.structure and self.holes == other.holes

    def __str__(self):
        return self.structure.shown("None" if hole else "*" for hole in self.holes)


def _tensor(name, what, leaf, device):
    if isinstance(leaf, Tensor):
        return leaf
    if isinstance(leaf, (bool, int, float, complex)):
        return tensor(leaf, device=device)
    raise TypeError(f"{name}: {what} must be made of tensors, numbers and None, not "
                    f"{type(leaf).__name__}")


def _function(name, what, function):
    if not callable(function):
        raise TypeError(f"{name}: {what} must be a function, not {type(function).__name__}")
    return function


def _same(name, what, made, wanted, place):
    if made != wanted:
        raise TypeError(f"{name}: {what} returns {made}, but {place} is {wanted}; the trees must "
                        "be the same")
    return made.tensors


def _anew(name, what, function, made, carry, place):
    """The tensors that a step returns as the next carry. Raises an error if the tree, a shape or a
    dtype differs from the carry's."""
    tensors = _same(name, what, made, carry, place)
    for path, new, old in zip(carry.paths(), tensors, carry.tensors, strict=True):
        if path and (new.shape, new.dtype) != (old.shape, old.dtype):
            raise _C.InvalidArgumentError(
                f"{name}: {place}{path} is {_kind(old)} before a step, and {_kind(new)} after it; "
                f"shape and dtype must stay the same{_defined_at(function)}")
    return tensors


def _kind(x):
    return f"{str(x.dtype).rpartition('.')[2]}{list(x.shape)}"


def _defined_at(function):
    """Where a function of Python is, in words."""
    code = getattr(function, "__code__", None)
    if code is None:
        return ""
    return f" in {code.co_name} ({os.path.basename(code.co_filename)}:{code.co_firstlineno})"


def while_loop(cond_fun, body_fun, init_val):
    """What body_fun makes of a value, called for as long as cond_fun(value) is true.

    cond_fun returns one bool. body_fun(value) returns a value of the same structure, shapes and
    dtypes. Backward through it is an error, because nobody knows the number of its steps; scan()
    and fori_loop() with ints for bounds are differentiable.
    """
    return _while_loop(_function("while_loop", "cond_fun", cond_fun),
                       _function("while_loop", "body_fun", body_fun), init_val)


def _while_loop(cond_fun, body_fun, init):
    carry = _Tree("while_loop", "the carried value", init)

    def more(tensors):
        return _tensor("while_loop", "what cond_fun returns", cond_fun(carry.build(tensors)),
                       carry.device)

    def step(tensors):
        made = _Tree("while_loop", "what body_fun returns", body_fun(carry.build(tensors)), carry)
        return _anew("while_loop", "body_fun", body_fun, made, carry, "init_val")

    return carry.build(_C._control.while_loop(more, step, carry.tensors))


def fori_loop(lower, upper, body_fun, init_val, *, unroll=None):
    """What body_fun makes of a value, called as body_fun(i, value) for i from lower below upper.

    i is an int64 tensor. lower and upper are ints or integer tensors without dims; other bounds run
    the same program. The loop is differentiable if both are ints, and then their difference is part
    of the program. unroll changes nothing.
    """
    _function("fori_loop", "body_fun", body_fun)
    if unroll is not None:
        _check_unroll("fori_loop", unroll)
    carry = _Tree("fori_loop", "init_val", init_val)

    def step(i, tensors):
        made = _Tree("fori_loop", "what body_fun returns", body_fun(i, carry.build(tensors)), carry)
        return _anew("fori_loop", "body_fun", body_fun, made, carry, "init_val")

    return carry.build(_C._control.fori_loop(_bound(lower), _bound(upper), step, carry.tensors))


def _bound(bound):
    if isinstance(bound, Tensor):
        return bound
    if isinstance(bound, bool) or not hasattr(bound, "__index__"):
        raise TypeError("fori_loop: a bound must be an int or a tensor, not "
                        f"{type(bound).__name__}")
    return bound.__index__()


def scan(f, init, xs=None, length=None, reverse=False, unroll=1, *, every=1):
    """(the last carry, all results) of f(carry, x) -> (carry, result) for each x in xs.

    xs is a tree of tensors, and x the same tree of their elements along the first dim. The carry
    keeps its structure, shapes and dtypes. results are stacked along a new first dim. Without xs, x
    is None and length says how often f is called. With reverse the steps go from the last element
    to the first, and results stay in the order of xs. unroll changes nothing.

    Differentiable: the carry of each step is kept for backward, which computes the rest of each
    step again. With every=k only the carry of every k-th step is kept, and backward computes those
    between them again. Each step then runs once more, and memory is for length / k + k carries.
    """
    _function("scan", "f", f)
    _check_unroll("scan", unroll)
    elements, results = _Tree("scan", "xs", xs), []
    carry = _Tree("scan", "init", init, elements)

    def step(carried, x):
        returned = f(carry.build(carried), elements.build(x))
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise TypeError("scan: the function must return a pair (carry, result), not "
                            f"{_described(returned)}")
        made = _Tree("scan", "the carry", returned[0], carry)
        results.append(_Tree("scan", "the result", returned[1], carry))
        return _anew("scan", "the function", f, made, carry, "init"), results[-1].tensors

    length = None if length is None else length.__index__()
    last, stacked = _C._control.scan(step, carry.tensors, elements.tensors, length, bool(reverse),
                                     _index("scan", "every", every))
    return carry.build(last), results[-1].build(stacked)


def _index(name, what, value):
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}: {what} must be an int, not {type(value).__name__}")
    return value.__index__()


def _check_unroll(name, unroll):
    """Checks JAX's argument, a bool or a number of steps, which lazuli does not need."""
    if not isinstance(unroll, bool) and _index(name, "unroll", unroll) < 0:
        raise ValueError(f"{name}: unroll must not be negative")


def _described(value):
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    return type(value).__name__


def map(f, xs, *, batch_size=None):
    """f(x) for each x in xs, stacked along a new first dim: one step after the other.

    xs is a tree of tensors, and x the same tree of their elements along the first dim. With
    batch_size a step computes so many elements at once, by vmap().
    """
    _function("map", "f", f)
    elements, results = _Tree("map", "xs", xs), []

    def step(x):
        results.append(_Tree("map", "what f returns", f(elements.build(x)), elements))
        return results[-1].tensors

    if batch_size is None:
        stacked = _C._control.map(step, elements.tensors)
    else:
        stacked = _map_batches(step, elements.tensors, _index("map", "batch_size", batch_size))
    return results[-1].build(stacked)


def _map_batches(step, xs, size):
    """map() in steps of `size` elements, and one shorter step for the rest."""
    if size < 1:
        raise ValueError(f"map: batch_size must be 1 or more, not {size}")
    if not xs or any(x.dim() == 0 for x in xs):
        raise ValueError("map: with batch_size xs must have tensors with a dim to go along")
    at_once = vmap(lambda *x: step(x), randomness="different")
    count = xs[0].shape[0]
    whole = count - count % size
    parts = []
    if whole or not count:
        batches = [x[:whole].reshape(-1, size, *x.shape[1:]) for x in xs]
        parts.append([y.flatten(0, 1) for y in _C._control.map(lambda x: at_once(*x), batches)])
    if whole < count:
        parts.append(at_once(*(x[whole:] for x in xs)))
    return [_C.cat(list(column)) for column in zip(*parts, strict=True)]


def associative_scan(fn, elems, reverse=False, axis=0):
    """All prefixes e0, fn(e0, e1), fn(fn(e0, e1), e2), ... of elems along an axis.

    elems is a tree of tensors of equal sizes along the axis. fn must be associative, and work on
    many elements at once: it gets two such trees, of any size along the axis, and returns one. It
    is called about 2 log2(n) times, and what it does are ordinary operations (Blelloch, 1990).
    """
    _function("associative_scan", "fn", fn)
    tree = _Tree("associative_scan", "elems", elems)

    def combine(left, right):
        made = _Tree("associative_scan", "what fn returns", fn(tree.build(left), tree.build(right)))
        return _same("associative_scan", "fn", made, tree, "elems")

    return tree.build(_C._control.associative_scan(combine, tree.tensors, axis, bool(reverse)))


def cond(pred, true_fun, false_fun, *operands):
    """true_fun(*operands) where pred is true, else false_fun(*operands): only one of them runs.

    pred is a bool, or a tensor of one bool. Both functions are traced; their results have the same
    structure, shapes and dtypes. Differentiable: backward runs the chosen function again.
    """
    tree, results = _Tree("cond", "operands", operands), []
    functions = (_branch("cond", "true_fun", true_fun, tree, results),
                 _branch("cond", "false_fun", false_fun, tree, results))
    made = _C._control.cond(_tensor("cond", "pred", pred, tree.device), *functions, tree.tensors)
    return results[0].build(made)


def switch(index, branches, *operands):
    """branches[index](*operands), with an index that is limited to those that there are.

    index is an int or a tensor of one integer. All branches are traced; their results have the same
    structure, shapes and dtypes. Differentiable: backward runs the chosen one again.
    """
    tree, results = _Tree("switch", "operands", operands), []
    functions = [_branch("switch", f"branch {i}", branch, tree, results)
                 for i, branch in enumerate(branches)]
    if not functions:
        raise ValueError("switch: there is no branch")
    made = _C._control.switch(_tensor("switch", "index", index, tree.device), functions,
                              tree.tensors)
    return results[0].build(made)


def _branch(name, what, function, operands, results):
    """The function of lists; what it returns is noted in results."""
    _function(name, what, function)

    def call(tensors):
        results.append(_Tree(name, f"what {what} returns", function(*operands.build(tensors)),
                             operands))
        return _same(name, what, results[-1], results[0], "what the first function returns")

    return call
