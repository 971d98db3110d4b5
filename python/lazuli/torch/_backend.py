"""torch.compile(backend="lazuli"): graphs of AOTAutograd, run by lazuli, what it refuses by
torch."""

import collections
import contextlib
import functools
import warnings

import torch
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase
from torch.fx.passes.split_module import split_module

from lazuli.torch import _pools, _random, _recurrent, _rows
from lazuli.torch._aliases import guarded, keep_what_is_written_to
from lazuli.torch._program import Partial, Program, refusals

# A graph keeps one program per set of sizes. Together they have at most so many nodes, which take
# about a gigabyte; but a graph always keeps so many programs.
MAX_NODES, LEAST_PROGRAMS = 250_000, 16


_NUMBERS = (int, float, torch.SymInt, torch.SymFloat, torch.SymBool)


class _Supported(OperatorSupportBase):
    def __init__(self, refused, drawing):
        self.refused, self.drawing = refused, drawing

    def is_node_supported(self, submodules, node):
        value = node.meta.get("val")
        ours = (node.op == "call_function" and node not in self.refused and
                node.target is not torch.ops.aten.copy_.default)
        return (ours and (self.drawing or not _random.draws(node)) and
                not isinstance(value, _NUMBERS))


class _Part(torch.nn.Module):
    def __init__(self, graph):
        super().__init__()
        self.graph = graph

    def forward(self, *arguments):
        return self.graph(arguments)


class Graph:
    """A graph of aten functions: a Program for each set of sizes and strides, or several with torch
    between them."""

    def __init__(self, gm, kind, first_saved=1 << 30, random="torch"):
        self.gm, self.kind, self.first_saved, self.random = gm, kind, first_saved, random
        placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
        self.dynamic = any(not isinstance(n, int) for p in placeholders
                           for n in getattr(p.meta.get("val"), "shape", (p.meta.get("val"),))
                           if n is not None)
        self.programs = collections.OrderedDict()
        self.most_programs = max(LEAST_PROGRAMS, MAX_NODES // len(gm.graph.nodes))
        self.facts = {}  # of the nodes, for the next sizes
        # Into parts that lazuli runs and draws of torch, which sizes do not change.
        self.split = None

    def __call__(self, arguments):
        # Sizes are dynamo's to guard, unless they are symbolic; strides of gradients are not.
        tensor, dynamic = torch.Tensor, self.dynamic
        key = (torch.get_num_threads(), *(((a.stride(), a.shape) if dynamic else a.stride())
                                          if isinstance(a, tensor) else a for a in arguments))
        program = self.programs.get(key)
        if program is None:
            program = self.programs[key] = self.make(arguments)
            if len(self.programs) > self.most_programs:
                self.programs.popitem(last=False)
        elif self.dynamic:
            self.programs.move_to_end(key)
        return program.run(arguments)

    def make(self, arguments):
        if not any(n.op == "call_function" for n in self.gm.graph.nodes):
            return _Eager(self.gm)
        nodes = self.gm.graph.nodes
        drawing, of_torch = (any(_random.draws(n) for n in nodes),
                             [n for n in nodes if _random.is_of_torch(n)])
        if self.random == "torch" and of_torch and (drawing or len(of_torch) > 1):
            return _Eager(self.in_turn(set(of_torch)))
        if drawing and self.random == "torch":
            self.split = self.split or _Eager(self.parts({}))
            return self.split
        try:
            return Program(self.gm, arguments, self.first_saved, self.kind, self.dynamic,
                           torch.get_num_threads(), _random if drawing else None, self.facts)
        except Partial as partial:
            refusals(partial.refused)
            return _Eager(self.parts(partial.refused))

    def in_turn(self, alone):
        """Graphs that run one after another, so that torch's generator is asked in the order of
        eager: these nodes, and what is between."""
        part, count = {}, 0
        for node in self.gm.graph.nodes:
            count += node in alone
            part[node] = count
            count += node in alone
        made = split_module(self.gm, self.gm, part.__getitem__, keep_original_order=True)
        for name, inner in list(made.named_children()):
            setattr(made, name, _Part(Graph(inner, self.kind, random=self.random)))
        return made

    def parts(self, refused):
        """The graph with the parts that lazuli runs as modules. It is a copy: the next sizes may
        have other parts."""
        nodes, graph = {}, torch.fx.Graph()
        graph.output(graph.graph_copy(self.gm.graph, nodes))
        supported = _Supported({nodes[n]: reason for n, reason in refused.items()},
                               self.random == "philox")
        made = CapabilityBasedPartitioner(torch.fx.GraphModule(self.gm, graph), supported,
                                          allows_single_node_partition=True).partition_and_fuse()
        for node in made.graph.nodes:
            if node.op == "call_module":
                setattr(made, node.target,
                        _Part(Graph(getattr(made, node.target), self.kind, random=self.random)))
        made.recompile()
        return made


class _Eager:
    def __init__(self, gm):
        self.gm = gm

    def run(self, arguments):
        made = self.gm(*arguments)
        return list(made) if isinstance(made, (tuple, list)) else made


def _compile(kind, random, gm, example_inputs):
    _random.rewrite(gm)
    context = torch._guards.TracingContext.try_get()
    first_saved = 1 << 30
    if kind == "forward" and context is not None and context.fw_metadata is not None:
        first_saved = context.fw_metadata.num_forward_returns
        keep_what_is_written_to(gm, context.fw_metadata, first_saved)
    graph = Graph(gm, kind, first_saved, random)

    def run(arguments):
        given = list(arguments)
        arguments.clear()
        return graph(given)

    run._boxed_call = True
    return run


@functools.cache
def decompositions():
    table = dict(torch._decomp.core_aten_decompositions())
    # The first would draw other numbers, the second goes over all elements to write a few, the
    # others look up what is repeated.
    for name in ("bernoulli", "select_scatter", *_rows.UPSAMPLING):
        table.pop(getattr(torch.ops.aten, name).default, None)
    return table | _pools.DECOMPOSITIONS


def plain_functions():
    """Within this, torch traces attention and recurrent layers as the functions that they are made
    of."""
    stack = contextlib.ExitStack()
    stack.enter_context(torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the flag's other settings, which stay
        stack.enter_context(torch.backends.mkldnn.flags(enabled=False))
    return stack


def backend(gm, example_inputs, **options):
    """What torch.compile(backend="lazuli", options={"random": ...}) calls; the option is
    train_step()'s."""
    given = dict(options.get("options") or {})
    random = _random.checked(given.pop("random", "torch"))
    if given:
        raise ValueError(
            f"torch.compile(backend=\"lazuli\") takes the option random, not {sorted(given)}")
    from torch._dynamo.backends.common import aot_autograd

    compilers = {f"{name}_compiler": functools.partial(_compile, kind, random) for name, kind in
                 {"fw": "forward", "bw": "backward", "inference": "inference"}.items()}
    compile_graph = aot_autograd(**compilers, decompositions=decompositions(),
                                 keep_inference_input_mutations=True)

    def compile_whole(gm, arguments):
        with _recurrent.whole(gm):
            return compile_graph(gm, arguments)

    with plain_functions():
        return guarded(gm, example_inputs, compile_whole)
