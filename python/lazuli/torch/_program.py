"""A graph of torch as a program of lazuli: recorded once for the sizes and strides it is called
with, then run on torch's memory."""

import collections
import functools
import math
import operator
import re

import torch
from torch.utils import _pytree as pytree

import lazuli as lz
from lazuli._C.hlo import _compile_once, _let_malloc_keep_memory, _RecordAt, _run_on_memory
from lazuli.torch import _rows
from lazuli.torch._report import Fallback, events, is_users

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
aten = torch.ops.aten
_let_malloc_keep_memory()
_ALIASES = {aten.alias.default, aten.detach.default}
# Functions that torch does to what a program gave, or was given, in no time. They keep all
# elements.
VIEWS = _ALIASES | {aten.permute.default, aten.view.default, aten._unsafe_view.default,
                    aten.t.default, aten.transpose.int, aten.unsqueeze.default, aten.squeeze.dim,
                    aten.squeeze.dims, aten.squeeze.default}
# torch.export asserts dtypes and devices that the graph has anyway.
_CHECKED_BY_SHAPES = aten._assert_tensor_metadata.default
_BY_MEMORY = {aten.as_strided.default, aten.as_strided_copy.default,
              aten.as_strided_scatter.default}


def place_of(node):
    """(file, function, line) of the user's code that the node is of, or None."""
    frames = _FRAME.findall(node.stack_trace or "")
    frames = [f for f in frames if is_users(f[0])] or frames
    return (frames[-1][0], frames[-1][2], int(frames[-1][1])) if frames else None


def place_text(node):
    place = place_of(node)
    return f"{place[0]}:{place[2]}" if place else ""


def hint(n):
    """A size of an example; 1 for one that a run decides."""
    return n if isinstance(n, int) else 1 if n.node.hint is None else n.node.hint


def order_of(shape, strides):
    """The dims from the outermost in memory to the innermost; None if elements do not lie side by
    side."""
    order = sorted(range(len(shape)), key=lambda d: (-strides[d] if shape[d] != 1 else 0, d))
    order = [d for d in order if shape[d] == 1] + [d for d in order if shape[d] != 1]
    expected = 1
    for d in reversed(order):
        if shape[d] != 1 and strides[d] != expected:
            return None
        expected *= shape[d]
    return order


def _row_major(shape, strides):
    expected = 1
    for n, stride in zip(reversed(shape), reversed(strides), strict=True):
        if n != 1 and stride != expected:
            return False
        expected *= n
    return True


def fills_its_memory(tensor):
    """Whether a tensor's elements, and no others, lie in its memory in row-major order."""
    sizes, strides = [hint(n) for n in tensor.shape], [hint(n) for n in tensor.stride()]
    return tensor.storage_offset() == 0 and _row_major(sizes, strides) and \
        hint(tensor.untyped_storage().nbytes()) == math.prod(sizes) * tensor.element_size()


def inverse(order):
    made = [0] * len(order)
    for i, d in enumerate(order):
        made[d] = i
    return made


class _Facts:
    """What torch says of a node. It is the same for all sizes, so it is asked once."""

    __slots__ = ("inputs", "is_taken", "meets_numbers", "place", "rank_and_dtype")

    def __init__(self, node):
        meta = node.meta.get("val")
        self.inputs = node.all_input_nodes
        self.place = place_of(node)
        self.is_taken = False  # whether lazuli can read its inputs, once that was looked at
        self.meets_numbers = any(isinstance(n.meta.get("val"), (torch.SymFloat, torch.SymInt))
                                 for n in self.inputs)
        self.rank_and_dtype = ((meta.dim(), _rows.dtype_of(meta.dtype)) if _rows.takes(meta)
                               else None)


class Recorder:
    """Records the nodes of a graph.

    What lazuli refuses is kept in `refused`, and goes on as zeros. `facts` has the _Facts of nodes
    that were recorded before, for other sizes.
    """

    def __init__(self, graph, dynamic, writes=(), facts=None):
        self.graph, self.dynamic = graph, dynamic
        self.facts = {} if facts is None else facts
        self.writes = writes  # nodes that write to an argument; they have the values that it gets
        self.refused = {}
        self.values = {}
        self.places = {}
        self.given = {}  # values of nodes that come from outside
        self.seed = None  # of the draws that the program makes

    def record(self, inputs):
        placeholders = [n for n in self.graph.nodes if n.op == "placeholder"]
        self.values = dict(zip(placeholders, inputs, strict=True))
        for node in self.graph.nodes:
            if node in self.given:
                self.values[node] = self.given[node]
            elif node.op == "call_function" and node.target is not _CHECKED_BY_SHAPES:
                self.values[node] = self.call(node)
            elif node.op == "get_attr":
                self.values[node] = self.attribute(node)

    def attribute(self, node):
        value = node.graph.owning_module
        for part in node.target.split("."):
            value = getattr(value, part)
        return from_torch(value)

    def call(self, node):
        meta = node.meta.get("val")
        facts = self.facts.get(node)
        if facts is None:
            facts = self.facts[node] = _Facts(node)
        place = facts.place
        try:
            if (self.refused and node.target is _rows.operator.getitem and
                    any(a in self.refused for a in facts.inputs)):
                raise _rows.Refused("")  # a part of what torch computes
            for a in facts.inputs:
                if not facts.is_taken:
                    _rows.check_taken(a.meta.get("val"))
                _rows.check_taken(self.values[a])
            facts.is_taken = True
            arguments, keywords = self.arguments(node)
            if place is None:
                value = self.compute(node, arguments, keywords)
            else:
                at = self.places.get(place) or self.places.setdefault(place, _RecordAt(*place))
                with at:
                    value = self.compute(node, arguments, keywords)
            if facts.meets_numbers:
                value = self.beside_numbers(value, meta)
            if not (self.dynamic and isinstance(value, lz.Tensor) and
                    (value.dim(), value.dtype) == facts.rank_and_dtype):
                self.check(value, meta)
            return value
        except lz.Error as error:
            self.refused[node] = str(error).splitlines()[0] if str(error) else ""
            return (hint(meta) if isinstance(meta, torch.SymInt)
                    else pytree.tree_map_only(torch.Tensor, self.zeros, meta))
        except Exception as error:  # a fault of lazuli's, which torch shall not hide
            error.add_note(f"lazuli: while {node.target} was "
                           f"recorded{f' ({p})' if (p := place_text(node)) else ''}")
            raise

    def compute(self, node, arguments, keywords):
        if node.target in _BY_MEMORY and not fills_its_memory(node.args[0].meta.get("val")):
            raise _rows.Refused("it asks for elements by their place in memory, which is not their "
                                "place in this tensor")
        if (self.seed is not None and not isinstance(node.target, torch._ops.OpOverload) and
                node.target not in _rows.PYTHON):
            return self.seed.draw(node.target, *arguments)
        return _rows.call(aten.copy.default if node in self.writes else node.target, arguments,
                          keywords)

    def beside_numbers(self, value, meta):
        """A number that a run computes is an f64 scalar here; as in torch it does not widen what it
        meets."""
        if (not isinstance(value, lz.Tensor) or not isinstance(meta, torch.Tensor) or
                not value.dtype.is_floating_point or not meta.dtype.is_floating_point):
            return value
        return value.to(_rows.dtype_of(meta.dtype))

    def zeros(self, meta):
        return (lz.zeros([hint(n) for n in meta.shape], dtype=_rows.dtype_of(meta.dtype))
                if _rows.takes(meta) else None)

    def arguments(self, node):
        def value(a):
            if isinstance(a, torch.fx.Node):
                return self.values[a]
            if isinstance(a, torch.dtype):
                return _rows.dtype_of(a)
            if isinstance(a, (list, tuple)):
                return [value(v) for v in a]
            if isinstance(a, slice):
                return slice(value(a.start), value(a.stop), value(a.step))
            return a

        return tuple(value(a) for a in node.args), {k: value(v) for k, v in node.kwargs.items()}

    def check(self, value, meta):
        """That lazuli gives what torch said it would."""
        if isinstance(meta, torch.Tensor):
            if not isinstance(value, lz.Tensor):
                raise _rows.Refused(f"lazuli gives {value!r}, torch a tensor")
            sizes = zip(value.shape, meta.shape, strict=len(value.shape) == len(meta.shape))
            if (len(value.shape) != len(meta.shape) or
                    any(isinstance(m, int) and not self.dynamic and n != m for n, m in sizes)):
                raise _rows.Refused(f"lazuli gives {list(value.shape)}, torch {list(meta.shape)}")
            if value.dtype != _rows.dtype_of(meta.dtype):
                raise _rows.Refused(f"lazuli gives {value.dtype}, torch {meta.dtype}")
        elif isinstance(meta, (tuple, list)):
            if not isinstance(value, (tuple, list)):
                raise _rows.Refused(
                    f"lazuli gives {type(value).__name__}, torch {len(meta)} results")
            if len(value) != len(meta):
                raise _rows.Refused(f"lazuli gives {len(value)} results, torch {len(meta)}")
            for v, m in zip(value, meta, strict=True):
                if m is not None and v is not None:
                    self.check(v, m)


def from_torch(tensor):
    """A copy of a torch tensor's elements; what lazuli cannot have as it is, which what takes it
    refuses."""
    if not _rows.takes(tensor):
        return tensor
    tensor = tensor.detach().contiguous().resolve_conj().resolve_neg()
    if tensor.dtype == torch.bfloat16:
        return lz.tensor(tensor.float().numpy()).to(lz.bfloat16)
    return lz.tensor(tensor.numpy(force=True))


class Partial(Exception):
    """A graph of which lazuli refuses nodes: {node: reason}."""

    def __init__(self, refused):
        super().__init__(f"{len(refused)} functions are left to torch")
        self.refused = refused


class _Output:
    """Where an output of a graph comes from: a number, an argument or a result of the program, seen
    through views of torch."""

    def __init__(self, number=None, argument=None, result=None, views=()):
        self.number, self.argument, self.result, self.views = number, argument, result, views

    def of(self, arguments, results):
        if self.argument is not None:
            value = arguments[self.argument]
        elif self.result is not None:
            value = results[self.result]
        else:
            return self.number
        for target, given in self.views:
            value = target(value, *given)
        return value


def _by_channels(graph, outputs, first_saved):
    """What only the backward graph asks for, if it is of images in a graph of convolutions, which
    want the channels innermost; statistics of groups of channels want them outermost."""
    functions = {n.target for n in graph.nodes}
    if aten.convolution.default not in functions or aten.native_group_norm.default in functions:
        return set()
    saved, viewed = set(), set(outputs[:first_saved])
    for node in outputs[first_saved:]:
        while isinstance(node, torch.fx.Node) and node.target in _ALIASES:
            node = node.args[0]
        if not isinstance(node, torch.fx.Node) or node.op != "call_function":
            continue
        if node.target in VIEWS:
            viewed.add(node.args[0])
        elif isinstance(node.meta.get("val"), torch.Tensor) and node.meta["val"].dim() > 3:
            saved.add(node)
    return saved - viewed


def root_of(node):
    """(the argument or computed node whose memory a node has in torch, the views from there to
    it)."""
    views = []
    while isinstance(node, torch.fx.Node) and node.op == "call_function":
        of = node.args[0].target if node.target is operator.getitem else node.target
        if not getattr(of, "is_view", False):
            break
        views.append(node)
        node = node.args[0]
    return node, views[::-1]


def view_of(node, values):
    """(what makes a view of a tensor, its arguments).

    A tensor that lies otherwise than in the graph is copied if need be.
    """
    arguments, keywords = torch.fx.map_arg((tuple(node.args[1:]), dict(node.kwargs)),
                                           values.__getitem__)
    target = aten.reshape.default if node.target is aten.view.default else node.target
    return functools.partial(target, **keywords) if keywords else target, arguments


def lies_densely(node):
    """Whether lazuli gives a node's value with torch's strides."""
    value = node.meta.get("val")
    return (isinstance(value, torch.Tensor) and
            order_of([hint(n) for n in value.shape], [hint(n) for n in value.stride()]) is not None)


def writes_of(graph):
    """The nodes that write to an argument, by its number: what AOTAutograd made of functions that
    change what they are given."""
    places = {n: i for i, n in enumerate(n for n in graph.nodes if n.op == "placeholder")}
    return {places[n.args[0]]: n
            for n in graph.nodes if n.target is aten.copy_.default and n.args[0] in places}


class Program:
    """A graph for arguments of these sizes and strides. Raises Partial if lazuli refuses some of
    it.

    What a user's function returns is computed; of what only the backward graph will ask for (the
    outputs from `first_saved` on) views of the same elements are one result, and views of arguments
    none. What is written to an argument is written in place, or copied there where its elements do
    not lie side by side.
    """

    def __init__(self, gm, arguments, first_saved, kind, dynamic, threads, seeded=None, facts=None):
        self.tensors, shapes, self.orders = [], [], []
        for i, a in enumerate(arguments):
            if _rows.takes(a):
                self._take(i, a, shapes)
        if seeded is not None:
            shapes.append((lz.int64, []))
        self.kind, self.seed = kind, seeded and seeded.seed
        self.writes = {i: n for i, n in writes_of(gm.graph).items() if i in self.tensors}
        self.updates = [(k, self.tensors.index(i))
                        for k, i in enumerate(i for i in self.writes if self.orders[i] != ())]
        recorder = Recorder(gm.graph, dynamic, set(self.writes.values()), facts)
        self.outputs, self.copies, self.permuted = [], [], []
        self.single = False

        def record(*parameters):
            if seeded is not None:
                recorder.seed = seeded.Seed(parameters[-1])
            given, inputs = dict(zip(self.tensors, parameters, strict=False)), []
            for i, a in enumerate(arguments):
                order = self.orders[i] if i in given else None
                inputs.append(a if i not in given else given[i].permute(inverse(order)) if order
                              else given[i])
            recorder.record(inputs)
            return self._results(gm.graph, recorder, first_saved)

        module = lz.hlo.HloModule.trace(shapes, record, self.updates, kind)
        if any(recorder.refused.values()):
            raise Partial(recorder.refused)
        # Weights that are trained are others in each run; those that are not keep their packed
        # copies.
        self.executable = (module.compile(num_threads=threads) if kind == "inference"
                           else _compile_once(module, threads))
        events.compiled(kind,
                        ", ".join(f"{str(d).rpartition('.')[2]}{list(s)}" for d, s in shapes[-3:]))

    def _take(self, i, a, shapes):
        order = order_of(a.shape, a.stride())
        plain = order is not None and _row_major(a.shape, a.stride())
        self.orders += [None] * (i + 1 - len(self.orders))
        if order is None or a.is_conj() or a.is_neg():
            self.orders[i] = ()  # copied for every run
            sizes = list(a.shape)
        else:
            self.orders[i] = None if plain else order
            sizes = list(a.shape) if plain else [a.shape[d] for d in order]
        self.tensors.append(i)
        shapes.append((_rows.dtype_of(a.dtype), sizes))

    def _results(self, graph, recorder, first_saved):
        placeholders = {n: i for i, n in enumerate(n for n in graph.nodes if n.op == "placeholder")}
        output = next(n for n in graph.nodes if n.op == "output")
        nodes = output.args[0]
        self.single = not isinstance(nodes, (tuple, list))
        results, numbers = [], {}
        updated = []
        for i, node in self.writes.items():
            value, order = recorder.values[node], self.orders[i]
            if order == ():
                self.copies.append((i, len(results)))
                results.append(value)
            else:
                updated.append(value.permute(order) if order else value)
        # Results that share memory in torch go on to do so; nobody asks that of gradients.
        counts = collections.Counter(root_of(n)[0]
                                     for n in (nodes[:first_saved] if not self.single else [nodes]))

        def shares(root):
            if self.kind == "backward" or not isinstance(root, torch.fx.Node):
                return False
            return (counts[root] > 1 and lies_densely(root) if root not in placeholders
                    else placeholders[root] not in self.writes)

        by_channels = set() if self.single else _by_channels(graph, nodes, first_saved)
        for i, node in enumerate([nodes] if self.single else nodes):
            views = []
            while isinstance(node, torch.fx.Node) and i >= first_saved and node.target in VIEWS:
                if node.target not in _ALIASES:
                    given = recorder.arguments(node)[0][1:]
                    views.append((aten.view.default if node.target is aten._unsafe_view.default
                                  else node.target, given))
                node = node.args[0]
            views.reverse()
            node = node.args[0] if node in recorder.writes else node
            if i < first_saved and shares(root_of(node)[0]):
                node, shared = root_of(node)
                views = [view_of(n, recorder.values) for n in shared]
            value = recorder.values.get(node) if isinstance(node, torch.fx.Node) else node
            if node in placeholders:
                self.outputs.append(_Output(argument=placeholders[node], views=views))
            elif not isinstance(value, lz.Tensor):
                self.outputs.append(_Output(number=value))
            else:
                if node not in numbers:
                    meta = node.meta.get("val")
                    order = None
                    if isinstance(meta, torch.Tensor) and meta.dim() > 1:
                        sizes, strides = ([hint(n) for n in meta.shape],
                                          [hint(n) for n in meta.stride()])
                        if None not in (*sizes, *strides) and not _row_major(sizes, strides):
                            order = order_of(sizes, strides)
                        elif node in by_channels:
                            order = [0, *range(2, meta.dim()), 1]
                    if order:
                        self.permuted.append((len(results), inverse(order)))
                        value = value.permute(order)
                    numbers[node] = len(results)
                    results.append(value)
                self.outputs.append(_Output(result=numbers[node], views=views))
        self.plain = not self.copies and all(o.result == i and not o.views
                                             for i, o in enumerate(self.outputs))
        return updated + results

    def run(self, arguments):
        held = []
        addresses = []
        orders = self.orders
        for i in self.tensors:
            tensor = arguments[i]
            if orders[i] == ():
                tensor = tensor.resolve_conj().resolve_neg().contiguous()
                held.append(tensor)
            addresses.append(tensor.data_ptr())
        if self.seed is not None:
            held.append(self.seed())
            addresses.append(held[-1].data_ptr())
        results = [torch.utils.dlpack.from_dlpack(c)
                   for c in _run_on_memory(self.executable, addresses, self.updates)]
        for i, order in self.permuted:
            # Without .data it would be a view that a function made, and autograd refuses writes to
            # such views.
            results[i] = results[i].permute(order).data
        for i, result in self.copies:
            arguments[i].copy_(results[result])
        if not self.plain:
            results = [o.of(arguments, results) for o in self.outputs]
        return results[0] if self.single else results


def refused_text(refused):
    """The nodes that lazuli refuses, each with the user's line and the reason."""
    return "; ".join(f"{n.target}{f' ({p})' if (p := place_text(n)) else ''}: {reason}"
                     for n, reason in refused.items() if reason)


def refusals(refused):
    """Tells report() of the nodes that are left to torch."""
    for node, reason in refused.items():
        if reason:
            events.fell_back(Fallback(str(node.target), reason, place_text(node)))
