"""Random numbers: drawn by torch, with its generator, before a program runs, so that they are those
of eager; or by the program."""

import math

import torch

import lazuli as lz
from lazuli._C.hlo import _draw as _draw_in_program
from lazuli.torch._program import hint, inverse, order_of

aten = torch.ops.aten


def _memory(sizes, order, dtype):
    """A tensor whose dims lie in this order, from the outermost; eager draws into memory, whatever
    the order."""
    empty = torch.empty([sizes[d] for d in order], dtype=dtype)
    return empty if order == sorted(order) else empty.permute(inverse(order))


def _drawing(name, from_numbers):
    """A draw: by torch, into memory that lies as eager's does, with its function of this name; or
    from numbers of the program."""

    def draw(sizes, order, dtype, *arguments):
        return getattr(_memory(sizes, order, dtype), name)(*arguments)

    draw.__name__ = draw.__qualname__ = f"_{name}"
    draw.from_numbers = from_numbers
    return draw


def _affine(x, start, scale):
    return x if (start, scale) == (0, 1) else x * scale + start


# The numbers of a program are uniform in [0, 1), those for _NORMAL of the standard normal
# distribution.
_bernoulli = _drawing("bernoulli_", lambda u, p: u < p)
_uniform = _drawing("uniform_", lambda u, low, high: _affine(u, low, high - low))
_normal = _drawing("normal_", _affine)
_log_normal = _drawing("log_normal_", lambda n, mean, std: lz.exp(_affine(n, mean, std)))
_integers = _drawing("random_", lambda u, low, high: lz.floor(_affine(u, low, high - low)))
_exponential = _drawing("exponential_", lambda u, rate: -lz.log1p(-u) / rate)
_cauchy = _drawing("cauchy_",
                   lambda u, median, sigma: _affine(lz.tan(math.pi * (u - 0.5)), median, sigma))
_geometric = _drawing("geometric_",
                      lambda u, p: lz.clamp(lz.ceil(lz.log1p(-u) / math.log1p(-p)), min=1))
_NORMAL = {_normal, _log_normal}
_DRAWS = {_bernoulli, _uniform, _normal, _log_normal, _integers, _exponential, _cauchy, _geometric}


SOURCES = ("torch", "philox")


def checked(source):
    if source not in SOURCES:
        raise ValueError("random is \"torch\" (its generator, the numbers of eager) or \"philox\" "
                         f"(drawn in the program, faster), not {source!r}")
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
        return function.from_numbers(self._numbers(sizes, lz.float64 if function is _integers
                                                   else dtype, function in _NORMAL),
                                     *arguments).to(dtype)


def draws(node):
    return node.op == "call_function" and node.target in _DRAWS


def is_of_torch(node):
    """Whether the node draws with torch's generator when it runs."""
    return (node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload) and
            torch.Tag.nondeterministic_seeded in node.target.tags)


def _size(graph, size, source, dim):
    """A size that is a number, an argument, a dim of one, or else of what the node is given, which
    then comes first."""
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


def _call(graph, draw, node, val, *arguments, filled=None):
    """The node of a draw of what val is. `filled` has the strides in whose order eager draws, if it
    is not what is written to."""
    source = next(a for a in node.args if isinstance(a, (torch.fx.Node, list, tuple)))
    sizes = [_size(graph, n, source, d) for d, n in enumerate(val.shape)]
    for n, of in zip(sizes, val.shape, strict=True):
        if isinstance(n, torch.fx.Node) and "val" not in n.meta:
            n.meta["val"] = of
    if filled is None:
        filled = (node.args[0].meta["val"] if isinstance(node.args[0], torch.fx.Node) and
                  "_like." not in str(node.target) else val)
    # What eager writes to in place lies as it is.
    filled = filled if filled.shape == val.shape else val
    order = (order_of([hint(n) for n in val.shape], [hint(n) for n in filled.stride()]) or
             list(range(val.dim())))
    made = graph.call_function(draw, (sizes, order, val.dtype, *arguments))
    made.meta["val"], made.stack_trace = val, node.stack_trace
    return made


def _then(graph, node, function, *arguments, **attributes):
    """What the function makes of a draw, at the node's line."""
    made = graph.call_function(function, arguments, attributes)
    made.meta["val"] = function(*(a.meta["val"] if isinstance(a, torch.fx.Node) else a
                                  for a in arguments), **attributes)
    made.stack_trace = node.stack_trace
    return made


def _drop(graph, node):
    """native_dropout as what it is made of; None where it draws nothing."""
    x, p, train = (*node.args, *node.kwargs.values())[:3]
    if not train or p in (0, 1):
        return None
    kept = _call(graph, _bernoulli, node, node.meta["val"][1], 1 - p)
    scaled = _then(graph, node, aten.mul.Tensor, x, kept)
    return _then(graph, node, aten.mul.Tensor, scaled, 1 / (1 - p)), kept


def _of_tensors(graph, node):
    """A draw whose probability, mean or deviation is a tensor, as eager makes it of one that takes
    numbers; None for others."""
    val, name = node.meta.get("val"), str(node.target)
    if not isinstance(val, torch.Tensor):
        return None
    # Eager makes a new tensor for what does not write to one, in row-major order whatever the order
    # of its operands.
    filled = (None if name == "aten.bernoulli.Tensor" else
              torch.empty_like(val, memory_format=torch.contiguous_format))
    if name in ("aten.bernoulli.default", "aten.bernoulli.Tensor"):
        p = node.args[-1]
        numbers = _call(graph, _uniform, node, torch.empty_like(val, dtype=p.meta["val"].dtype), 0,
                        1, filled=filled)
        return _then(graph, node, aten._to_copy.default,
                     _then(graph, node, aten.lt.Tensor, numbers, p), dtype=val.dtype)
    if name in ("aten.normal.Tensor_Tensor", "aten.normal.Tensor_float",
                "aten.normal.float_Tensor"):
        mean, std = (*node.args, 1)[:2]
        numbers = _call(graph, _normal, node, val, 0, 1, filled=filled)
        return _then(graph, node, aten.add.Tensor,
                     _then(graph, node, aten.mul.Tensor, numbers, std), mean)
    return None


def _draw(node):
    """(what draws, its arguments) for a node that draws of what tensors hold nothing; None for
    others."""
    given = ({a.name: v for a, v in zip(node.target._schema.arguments, node.args, strict=False)} |
             node.kwargs)
    found = {
        "aten.bernoulli.p": (_bernoulli, given.get("p", 0.5)),
        "aten.rand.default": (_uniform, 0, 1), "aten.rand_like.default": (_uniform, 0, 1),
        "aten.randn.default": (_normal, 0, 1), "aten.randn_like.default": (_normal, 0, 1),
        "aten.uniform.default": (_uniform, given.get("from", 0), given.get("to", 1)),
        "aten.normal_functional.default": (_normal, given.get("mean", 0), given.get("std", 1)),
        "aten.normal.float_float": (_normal, given.get("mean", 0), given.get("std", 1)),
        "aten.log_normal.default": (_log_normal, given.get("mean", 1), given.get("std", 2)),
        "aten.cauchy.default": (_cauchy, given.get("median", 0), given.get("sigma", 1)),
        "aten.geometric.default": (_geometric, given.get("p")),
        "aten.randint.default": (_integers, 0, given.get("high")),
        "aten.randint.low": (_integers, given.get("low"), given.get("high")),
        "aten.randint_like.default": (_integers, 0, given.get("high")),
        "aten.randint_like.low_dtype": (_integers, given.get("low"), given.get("high")),
        "aten.exponential.default": (_exponential, given.get("lambd", 1)),}.get(str(node.target))
    return None if found is None or any(isinstance(a, torch.fx.Node) for a in found) else found


def rewrite(gm):
    """Makes draws of a graph's random functions: calls that take no tensor, so that they come
    before what lazuli runs."""
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
                made = (_of_tensors(graph, node) if found is None
                        else _call(graph, found[0], node, node.meta["val"], *found[1:]))
                if made is None:
                    continue
                node.replace_all_uses_with(made)
        graph.erase_node(node)
        changed = True
    if changed:
        graph.eliminate_dead_code()
        gm.recompile()
