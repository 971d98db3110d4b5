"""Answers to Python's questions in a trace: those about values that depend on sizes and literals
alone, which no run decides."""

import torch
from torch.fx.experimental.proxy_tensor import get_proxy_mode, get_proxy_slot
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

aten = torch.ops.aten
_TAKE_MASKS = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default}


class Known(TorchDispatchMode):
    """Within this, `if (positions >= 0).all():` goes on where the positions are an arange(): the
    nodes that say so are computed.

    What has such values stays in the graph as everything else. Masks and lists of positions are
    known likewise, where sizes depend on them. What a program is given, what the user's functions
    close over and random numbers are not known.
    """

    def __init__(self):
        super().__init__()
        self.nodes, self.values, self.last, self.root = set(), {}, None, None

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        keywords = keywords or {}
        if function in _TAKE_MASKS:
            arguments = (arguments[0], self._positions(arguments[1]), *arguments[2:])
        elif (torch.Tag.data_dependent_output in function.tags or
              torch.Tag.dynamic_output_shape in function.tags):
            given = [a for a in pytree.tree_leaves((arguments, keywords))
                     if isinstance(a, torch.Tensor)]
            nodes = [self._node(a) for a in given]
            if nodes and all(n in self.nodes for n in nodes):
                values = {id(a): self._value(n) for a, n in zip(given, nodes, strict=True)}
                return self._again(function, *pytree.tree_map_only(
                    torch.Tensor, lambda a: values[id(a)], (arguments, keywords)))
        return function(*arguments, **keywords)

    @staticmethod
    def _again(function, arguments, keywords):
        """What the function gives for these values, its tensors as literals of the graph."""
        with _disable_current_modes(), torch.no_grad():
            made = function(*arguments, **keywords)
        return pytree.tree_map_only(torch.Tensor, aten.lift_fresh.default, made)

    def _positions(self, indices):
        """Masks among indices as the positions that they take, if they are known."""
        made = []
        for index in indices:
            node = (self._node(index) if isinstance(index, torch.Tensor) and
                    index.dtype in (torch.bool, torch.uint8) else None)
            if node in self.nodes:
                made += self._again(lambda mask: mask.nonzero(as_tuple=True), (self._value(node),),
                                    {})
            else:
                made.append(index)
        return made

    def _node(self, tensor):
        """The node of the graph that the tensor is, or None; it is among self.nodes where its value
        is known."""
        mode = get_proxy_mode()
        if isinstance(tensor, torch._subclasses.functional_tensor.FunctionalTensor):
            tensor = tensor.from_functional()
        held = mode and get_proxy_slot(tensor, mode.tracer, None)
        if held is None:
            return None
        self.root = mode.tracer.root
        self._look(mode.tracer.graph)
        return held.proxy.node

    def _look(self, graph):
        """Goes over the nodes that are new."""
        node = next(iter(graph.nodes)) if self.last is None else self.last.next
        while node.op != "root":
            if node.op == "get_attr":  # a literal, or what somebody may write to between steps
                known = bool(node.users) and all(u.target is aten.lift_fresh_copy.default
                                                 for u in node.users)
            else:
                random = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
                known = (node.op == "call_function" and not random and
                         all(n in self.nodes for n in node.all_input_nodes))
            if known:
                self.nodes.add(node)
            node, self.last = node.next, node

    def _value(self, node):
        pending = [node]
        with _disable_current_modes(), torch.no_grad():
            while pending:
                node = pending[-1]
                missing = [n for n in node.all_input_nodes if n not in self.values]
                pending += missing
                if missing:
                    continue
                pending.pop()
                if node not in self.values:
                    self.values[node] = self._compute(node)
        return self.values[node]

    def _compute(self, node):
        if node.op == "get_attr":
            return getattr(self.root, node.target)
        arguments, keywords = torch.fx.map_arg((node.args, node.kwargs), self.values.__getitem__)
        return node.target(*arguments, **keywords)
