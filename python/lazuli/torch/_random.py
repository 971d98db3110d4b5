"""Random numbers: drawn by torch, with its generator, before a program runs, so that they are those of eager; or by the program."""

import torch

import lazuli as lz
from lazuli._C.hlo import _draw as _draw_in_program
from lazuli.torch._program import hint, inverse, order_of

aten = torch.ops.aten


def _memory(sizes, order, dtype):
    """A tensor whose dims lie in this order, from the outermost; eager draws into memory, whatever the order."""
    empty = torch.empty([sizes[d] for d in order], dtype=dtype)
    return empty if order == sorted(order) else empty.permute(inverse(order))


# Each makes what eager makes: the same draws into memory that lies the same way.
def _kept(sizes, order, dtype, p):
    return _memory(sizes, order, dtype).bernoulli_(1 - p)


def _bernoulli(sizes, order, dtype, p):
    return _memory(sizes, order, dtype).bernoulli_(p)


def _uniform(sizes, order, dtype, low, high):
    return _memory(sizes, order, dtype).uniform_(low, high)


def _normal(sizes, order, dtype, mean, std):
    return _memory(sizes, order, dtype).normal_(mean, std)


def _integers(sizes, order, dtype, low, high):
    return _memory(sizes, order, dtype).random_(low, high)


def _exponential(sizes, order, dtype, lambd):
    return _memory(sizes, order, dtype).exponential_(lambd)


_DRAWS = {_kept, _bernoulli, _uniform, _normal, _integers, _exponential}


SOURCES = ("torch", "philox")


def checked(source):
    if source not in SOURCES:
        raise ValueError(f"random is \"torch\" (its generator, the numbers of eager) or \"philox\" (drawn in the program, faster), not {source!r}")
    return source


SEED = torch.empty((), dtype=torch.int64)  # what a program with draws of its own takes


def seed():
    """That of a run: torch's generator says it, so manual_seed() repeats all runs after it."""
    return torch.empty((), dtype=torch.int64).random_()


class Seed:
    """Makes the draws of a program of its parameter, each from a stream of its own."""

    def __init__(self, parameter):
        self.halves = parameter.to(lz.uint32), (parameter >> 32).to(lz.uint32)
        self.streams = 0

    def _numbers(self, sizes, dtype, normal=False):
        self.streams += 1
        wide = lz.float64 if dtype == lz.float64 else lz.float32
        return _draw_in_program(*self.halves, self.streams, list(sizes), wide, normal)

    def draw(self, function, sizes, _, dtype, *arguments):
        """What torch's draw of this name gives, of other numbers."""
        u = self._numbers(sizes, lz.float64 if function is _integers else dtype, function is _normal)
        if function in (_kept, _bernoulli):
            u = u < (1 - arguments[0] if function is _kept else arguments[0])
        elif function is _exponential:
            u = -lz.log1p(-u) / arguments[0]
        elif function is _integers:
            u = lz.floor(u * (arguments[1] - arguments[0])) + arguments[0]
        elif function is _uniform:
            u = u if arguments == (0, 1) else u * (arguments[1] - arguments[0]) + arguments[0]
        else:
            u = u if arguments == (0, 1) else u * arguments[1] + arguments[0]
        return u.to(dtype)


def draws(node):
    return node.op == "call_function" and node.target in _DRAWS


def _size(graph, size, source, dim):
    """A size that is a number, an argument, a dim of one, or else of what the node is given, which then comes first."""
    if isinstance(size, int):
        return size
    if isinstance(source, (list, tuple)):
        return source[dim]
    for argument in (n for n in graph.nodes if n.op == "placeholder"):
        val = argument.meta.get("val")
        if isinstance(val, torch.SymInt) and str(val) == str(size):
            return argument
        for d, n in enumerate(val.shape if isinstance(val, torch.Tensor) else ()):
            if str(n) == str(size):
                return graph.call_function(aten.sym_size.int, (argument, d))
    return graph.call_function(aten.sym_size.int, (source, dim))


def _call(graph, draw, node, val, *arguments):
    """The node of a draw of what val is."""
    sizes = [_size(graph, n, node.args[0], d) for d, n in enumerate(val.shape)]
    for n, of in zip(sizes, val.shape, strict=True):
        if isinstance(n, torch.fx.Node) and "val" not in n.meta:
            n.meta["val"] = of
    filled = node.args[0].meta["val"] if isinstance(node.args[0], torch.fx.Node) and "_like." not in str(node.target) else val
    filled = filled if filled.shape == val.shape else val  # what eager writes to in place lies as it is
    order = order_of([hint(n) for n in val.shape], [hint(n) for n in filled.stride()]) or list(range(val.dim()))
    made = graph.call_function(draw, (sizes, order, val.dtype, *arguments))
    made.meta["val"], made.stack_trace = val, node.stack_trace
    return made


def _drop(graph, node):
    """native_dropout as what it is made of; None where it draws nothing."""
    x, p, train = (*node.args, *node.kwargs.values())[:3]
    if not train or p in (0, 1):
        return None
    val, mask = node.meta["val"]
    kept = _call(graph, _kept, node, mask, p)
    scaled = graph.call_function(aten.mul.Tensor, (x, kept))
    result = graph.call_function(aten.mul.Tensor, (scaled, 1 / (1 - p)))
    for n in (scaled, result):
        n.meta["val"], n.stack_trace = val, node.stack_trace
    return result, kept


def _draw(node):
    """(what draws, its arguments) for a node that draws of what tensors hold nothing; None for others."""
    given = {a.name: v for a, v in zip(node.target._schema.arguments, node.args, strict=False)} | node.kwargs
    found = {
        "aten.bernoulli.p": (_bernoulli, given.get("p", 0.5)),
        "aten.rand.default": (_uniform, 0, 1), "aten.rand_like.default": (_uniform, 0, 1),
        "aten.randn.default": (_normal, 0, 1), "aten.randn_like.default": (_normal, 0, 1),
        "aten.uniform.default": (_uniform, given.get("from", 0), given.get("to", 1)),
        "aten.normal_functional.default": (_normal, given.get("mean", 0), given.get("std", 1)),
        "aten.randint.default": (_integers, 0, given.get("high")), "aten.randint.low": (_integers, given.get("low"), given.get("high")),
        "aten.randint_like.default": (_integers, 0, given.get("high")),
        "aten.randint_like.low_dtype": (_integers, given.get("low"), given.get("high")),
        "aten.exponential.default": (_exponential, given.get("lambd", 1)),
    }.get(str(node.target))
    return None if found is None or any(isinstance(a, torch.fx.Node) for a in found) else found


def rewrite(gm):
    """Makes draws of a graph's random functions: calls that take no tensor, so that they come before what lazuli runs."""
    graph, changed = gm.graph, False
    for node in list(graph.nodes):
        if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
            continue
        with graph.inserting_before(node):
            if node.target is aten.native_dropout.default:
                made = _drop(graph, node)
                if made is None:
                    continue
                for user in list(node.users):
                    user.replace_all_uses_with(made[user.args[1]])
                    graph.erase_node(user)
            else:
                found = _draw(node)
                if found is None:
                    continue
                node.replace_all_uses_with(_call(graph, found[0], node, node.meta["val"], *found[1:]))
        graph.erase_node(node)
        changed = True
    if changed:
        graph.eliminate_dead_code()
        gm.recompile()
