"""Memory that tensors share: where AOTAutograd's graphs, which write to nothing, would not do what
eager does.

AOTAutograd turns each write into a new value of all tensors that share the memory. It takes what
arguments share from the first call, and some views it cannot follow backwards. Such graphs and such
calls are torch's, as dynamo captured them.
"""

import collections
import inspect
import itertools
import operator
import os
import traceback

import numpy as np
import torch

from lazuli.torch._program import VIEWS, fills_its_memory, place_text
from lazuli.torch._report import Fallback, events

_HERE = os.path.dirname(os.path.abspath(__file__))
_WRITERS = {operator.setitem,
            *(getattr(operator, f"i{name}")
              for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or",
                           "xor", "lshift", "rshift", "matmul"))}
# Views whose elements are found by their place in memory, and those that leave elements out in
# between or have some twice.
_BY_MEMORY = {"as_strided", "as_strided_", "as_strided_copy", "as_strided_scatter"}
_ODD = {"unfold", "unfold_copy"} | _BY_MEMORY
# Or be views, as the strides have it.
_MAY_COPY = {"reshape", "reshape_as", "flatten", "ravel", "contiguous"}
_IMAGES = {torch.nn.functional.unfold}  # not a view
# Of the dims of a tensor, in place.
_RESHAPERS = {"unsqueeze_", "squeeze_", "transpose_", "swapaxes_", "swapdims_", "t_"}
_OF_SEVERAL_RESULTS = {"unbind", "split", "split_with_sizes", "chunk", "tensor_split", "hsplit",
                       "vsplit", "dsplit"}


def _name(node):
    return (node.target if isinstance(node.target, str)
            else getattr(node.target, "__name__", str(node.target)))


def _writes(node):
    """Whether a node of dynamo's graph writes to what it is given."""
    if node.op not in ("call_method", "call_function"):
        return False
    if node.target in _WRITERS or node.kwargs.get("out") is not None:
        return True
    name = _name(node)
    if isinstance(node.target, torch._ops.OpOverload):
        return node.target._schema.is_mutable
    if name.endswith("_") and not name.endswith("__"):
        return True
    return _in_place(node)


def _in_place(node):
    """Whether it is a function with an argument `inplace`, which is true."""
    if node.kwargs.get("inplace"):
        return True
    if node.op != "call_function" or True not in node.args:
        return False
    try:
        names = list(inspect.signature(node.target).parameters)
    except (TypeError, ValueError):
        return False
    return "inplace" in names[:len(node.args)] and node.args[names.index("inplace")] is True


def _cannot_be_followed(gm):
    """(a node, why) for which the whole graph is torch's, or None."""
    nodes = [n for n in gm.graph.nodes if n.op in ("call_method", "call_function")]
    for node in nodes:
        if _name(node) == "set_":
            return (node, "a tensor's memory is replaced, by x.data = ... or set_(), which a graph "
                    "without writes cannot do")
    for node in nodes:
        if _name(node) in _BY_MEMORY and not fills_its_memory(node.args[0].meta["example_value"]):
            return (node, "it asks for elements by their place in memory, where others lie than "
                    "those of its tensor")
    odd = next((n for n in nodes
                if _name(n) in _ODD and n.target not in _IMAGES or _is_of_another_dtype(n)), None)
    writers = [n for n in nodes if _writes(n)]
    if odd is not None and writers:
        return odd, "AOTAutograd does not follow this view in a function that writes to tensors"
    written = {_storage(a) for n in writers for a in _targets(n)} - {None}
    for node in nodes:
        if (_name(node) in _MAY_COPY and _storage(node) != _storage(node.args[0]) and
                _storage(node.args[0]) in written):
            return (node, "it copies a tensor that is written to, for its strides, which "
                    "AOTAutograd does not know")
    reshaped = [n for n in writers if _name(n) in _RESHAPERS and
                _storage(n) in _given(gm) | _results_with_gradients(gm)]
    if reshaped and len(reshaped) < len(writers):
        return (reshaped[0], "it changes the dims of an argument or a result in a function that "
                "writes to tensors, where AOTAutograd loses an argument's place in memory and "
                "refuses later writes to a result")
    for node in writers and _views_of_several(gm):
        return (node, "its result is a view of an argument and has a gradient, which AOTAutograd "
                "makes a copy of")
    for node in writers:
        if any(map(_repeats, _targets(node))):
            return (node, "it writes to a tensor that has some elements in several places, as "
                    "expand() makes")
    return None


def _given(gm):
    """The memory of a graph's arguments."""
    return {_storage(n) for n in gm.graph.nodes if n.op == "placeholder"} - {None}


def _results_with_gradients(gm):
    """The memory of a graph's results that have a gradient."""
    output = next(n for n in gm.graph.nodes if n.op == "output")
    return {_storage(n) for n in output.all_input_nodes
            if getattr(n.meta.get("example_value"), "requires_grad", False)} - {None}


def _views_of_several(gm):
    """The functions of several views that results of the graph with gradients come from, if they
    are views of arguments."""
    given = _given(gm)
    output = next(n for n in gm.graph.nodes if n.op == "output")
    found = []
    for result in output.all_input_nodes:
        value = result.meta.get("example_value")
        if _storage(result) not in given or not value.requires_grad:
            continue
        node = result
        while node.op != "placeholder" and node.all_input_nodes:
            if _name(node) in _OF_SEVERAL_RESULTS:
                found.append(node)
                break
            node = node.all_input_nodes[0]
    return found


def _targets(writer):
    """What a node may write to."""
    return [a for a in (*writer.args[:1], writer.kwargs.get("out"), writer.kwargs.get("input"))
            if isinstance(a, torch.fx.Node)]


def _storage(node):
    """What tells apart the memory of tensors; None where it cannot be asked for, as of sparse ones
    and those of torch.func."""
    value = node.meta.get("example_value") if isinstance(node, torch.fx.Node) else None
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return None
    try:
        return value.untyped_storage()._cdata
    except NotImplementedError:
        return None


def _is_of_another_dtype(node):
    """Whether it is a view through which gradients do not go, of a tensor that may have some."""
    value = node.meta.get("example_value")
    source = (node.args[0].meta.get("example_value")
              if node.args and isinstance(node.args[0], torch.fx.Node) else None)
    return _name(node) == "view" and isinstance(value, torch.Tensor) and \
        isinstance(source, torch.Tensor) and value.dtype != source.dtype and source.requires_grad


def _repeats(argument):
    """Whether a node is a tensor that has an element twice."""
    value = argument.meta.get("example_value")
    return isinstance(value, torch.Tensor) and value.layout == torch.strided and \
        any(isinstance(s, int) and s == 0 and not (isinstance(n, int) and n < 2)
            for n, s in zip(value.shape, value.stride(), strict=True))


def _extent(tensor):
    """(address, address behind the last element)."""
    at = tensor.data_ptr()
    return (at, at + tensor.element_size() *
            (1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))))


class _Memory:
    """A tensor's memory for numpy, whatever its dtype."""

    def __init__(self, tensor):
        size = tensor.element_size()
        self.__array_interface__ = {"version": 3, "shape": tuple(tensor.shape),
                                    "typestr": f"|V{size}", "data": (tensor.data_ptr(), True),
                                    "strides": tuple(s * size for s in tensor.stride())}


def _share_elements(a, b):
    try:
        return np.shares_memory(np.asarray(_Memory(a)), np.asarray(_Memory(b)), max_work=10_000)
    except np.exceptions.TooHardError:
        return True


def _sharing(tensors, written=None):
    """The places of tensors that have elements in common with another, of which one is among those
    that are written to, if these are known."""
    extents = sorted((*_extent(t), i)
                     for i, t in enumerate(tensors) if t.layout == torch.strided and t.numel() > 0)
    open_, found = [], set()
    for start, end, i in extents:
        open_ = [(e, j) for e, j in open_ if e > start]
        for _, j in open_:
            if ((written is None or i in written or j in written) and
                    _share_elements(tensors[i], tensors[j])):
                found |= {i, j}
        open_.append((end, i))
    return found


class Guarded:
    """A compiled graph that writes to arguments.

    Calls in which these share elements with other arguments are torch's.
    """

    def __init__(self, gm, compiled, written, dynamic):
        self.gm, self.compiled, self.written, self.dynamic = gm, compiled, written, dynamic
        self.addresses, self.sharing = None, False

    def __call__(self, *arguments):
        tensors = [a for a in arguments if isinstance(a, torch.Tensor)]
        addresses = [a.data_ptr() for a in tensors]
        if self.dynamic or addresses != self.addresses:
            places = [i for i, a in enumerate(arguments) if isinstance(a, torch.Tensor)]
            written = self.written and {k for k, i in enumerate(places) if i in self.written}
            self.addresses, self.sharing = addresses, bool(_sharing(tensors, written))
            if self.sharing:
                events.fell_back(Fallback("a whole graph", "it writes to an argument that shares "
                                          "elements with another", ""))
        return self.gm.forward(*arguments) if self.sharing else self.compiled(*arguments)


def _apart(arguments):
    """The examples of a graph's arguments as if each had memory of its own, which AOTAutograd then
    does not look for guards of."""
    places = [i for i, a in enumerate(arguments) if isinstance(a, torch.Tensor) and
              a.device.type == "cpu" and a.layout == torch.strided]
    context = torch._guards.TracingContext.try_get()
    if (context is None or context.fake_mode is None or
            any(isinstance(arguments[i], torch._subclasses.FakeTensor) for i in places)):
        return arguments
    held = collections.Counter(memory for i in places for memory in _memory_of(arguments[i]))
    made = list(arguments)
    for i in places:
        if all(held[memory] == 1 for memory in _memory_of(arguments[i])):
            continue
        given = arguments[i]
        known = context.fake_mode.from_tensor(given)
        with context.fake_mode, torch.enable_grad():
            made[i] = torch.empty_strided(known.shape, known.stride(), dtype=given.dtype,
                                          requires_grad=given.requires_grad)
            made[i] = made[i] if given.is_leaf else made[i].view_as(made[i])
    return made


def _memory_of(tensor):
    """Addresses of the tensor's memory and, if it is a view, of its base's, which is another after
    x.data = ..."""
    return {t.untyped_storage().data_ptr()
            for t in (tensor, tensor._base) if t is not None and t.numel() > 0}


def _is_ours(error):
    """Whether an exception came through lazuli's compilers; else AOTAutograd, which calls them,
    cannot take the graph."""
    files = (f.f_code.co_filename for f, _ in traceback.walk_tb(error.__traceback__))
    functorch = os.path.join("torch", "_functorch")
    inside = itertools.dropwhile(lambda name: functorch not in name, files)
    return any(name.startswith(_HERE) for name in inside)


def keep_what_is_written_to(gm, metadata, first_saved):
    """What a forward graph saves of arguments that are written to, in it or behind it, becomes a
    copy: backward wants the old values."""
    placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
    if len(metadata.input_info) != len(placeholders):
        return
    written = {n for n, info in zip(placeholders, metadata.input_info, strict=True)
               if info.mutates_data}
    output = next(n for n in gm.graph.nodes if n.op == "output")
    made = list(output.args[0])
    for i, node in enumerate(made[first_saved:], first_saved):
        source = node
        while (isinstance(source, torch.fx.Node) and source.op == "call_function" and
               source.target in VIEWS):
            source = source.args[0]
        if source in written:
            with gm.graph.inserting_before(output):
                made[i] = gm.graph.call_function(torch.ops.aten.clone.default, (node,))
                made[i].meta["val"] = node.meta["val"]
    if made != list(output.args[0]):
        output.args = (made,)
        gm.recompile()


def guarded(gm, arguments, compile_graph):
    """What runs a graph of dynamo's: compile_graph(gm, arguments) where that can be right, else
    torch."""
    found = _cannot_be_followed(gm)
    if found is not None:
        events.fell_back(Fallback(f"a whole graph, for {_name(found[0])}()", found[1],
                                  place_text(found[0])))
        return gm.forward
    if not any(map(_writes, gm.graph.nodes)):
        return compile_graph(gm, arguments)
    try:
        compiled = compile_graph(gm, _apart(arguments))
    except Exception as error:
        if _is_ours(error):
            raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        events.fell_back(Fallback("a whole graph that writes to tensors", reason, ""))
        return gm.forward
    context = torch._guards.TracingContext.try_get()
    metadata = context and context.fw_metadata
    written = None
    if metadata is not None and len(metadata.input_info) == len(arguments):
        written = {i for i, info in enumerate(metadata.input_info)
                   if info.mutates_data or info.mutates_metadata}
    if written == set():
        return compiled
    return Guarded(gm, compiled, written, any(not isinstance(a, torch.Tensor) for a in arguments))
