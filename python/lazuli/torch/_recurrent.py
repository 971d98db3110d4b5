"""torch's recurrent layers as one function of a graph, and its gradient as another, where torch
would trace a step after the other.

lazuli.recurrent gives what torch's function gives and, where gradients are wanted, what lazuli's
gradient reads of the layers, which lazuli.recurrent_backward is given: it runs no layer again.
"""

import contextlib
import math
import typing

import torch

import lazuli as lz
from lazuli.autograd.graph import saved_tensors_hooks

_LIBRARY = torch.library.Library("lazuli", "FRAGMENT")
_LAYERS = "Tensor input, Tensor[] hx, Tensor[] params, bool biases, int layers, bool bidirectional"
_LIBRARY.define(f"recurrent(str kind, bool keeps, {_LAYERS}) -> Tensor[]")
_LIBRARY.define("recurrent_backward(str kind, bool[] wanted, Tensor?[] gradients, Tensor[] kept, "
                f"{_LAYERS}) -> Tensor[]")
_FUNCTIONS = {kind: getattr(torch._VF, kind) for kind in ("lstm", "gru", "rnn_tanh", "rnn_relu")}
_GATES = {"lstm": 4, "gru": 3}
_KEPT = {"lstm": 5, "gru": 5}  # arrays that the gradient of a layer reads


class _Layers(typing.NamedTuple):
    """The arguments of a recurrent layer's function, of torch or of lazuli; input [T, B, n]."""

    kind: str
    input: typing.Any
    hx: list
    params: list
    biases: bool
    layers: int
    bidirectional: bool

    @property
    def directions(self):
        return 2 if self.bidirectional else 1

    @property
    def cells(self):
        """(layer, direction) of each layer's directions, as their parameters lie."""
        return [(n, d) for n in range(self.layers) for d in range(self.directions)]

    @property
    def projected(self):
        return len(self.params) // len(self.cells) > (4 if self.biases else 2)

    @property
    def kept(self):
        """How many arrays the gradient of each cell reads."""
        return _KEPT.get(self.kind, 1) + self.projected

    def kept_sizes(self):
        """The sizes of what is kept: the arrays of each layer and direction, before them the input
        of each layer but the first, and last the results, which a program may write to."""
        steps, batch = self.input.shape[:2]
        hidden = self.params[0].shape[0] // _GATES.get(self.kind, 1)
        for layer, direction in self.cells:
            if layer > 0 and direction == 0:
                yield steps, batch, self.directions * self.hx[0].shape[2]
            yield from [(steps, batch, hidden)] * self.kept
        yield steps, batch, self.directions * self.hx[0].shape[2]

    def call(self, function):
        """[output, last states...] of a function that has torch's arguments."""
        hx = self.hx if self.kind == "lstm" else self.hx[0]
        return list(function(self.input, hx, self.params, self.biases, self.layers, 0.0, False,
                             self.bidirectional, False))

    @property
    def tensors(self):
        return [self.input, *self.hx, *self.params]

    def of(self, tensors):
        """The same layers of other tensors."""
        states = 1 + len(self.hx)
        return self._replace(input=tensors[0], hx=list(tensors[1:states]),
                             params=list(tensors[states:]))


# --- the functions in torch


def _run(kind, keeps, *given):
    """What torch runs where lazuli does not. What is kept is for lazuli, which then does not run
    the gradient either."""
    layers = _Layers(kind, *given)
    kept = layers.kept_sizes() if keeps else ()
    return layers.call(_FUNCTIONS[kind]) + [layers.input.new_full(s, math.nan) for s in kept]


def _shapes(kind, keeps, *given):
    layers = _Layers(kind, *given)
    new = layers.input.new_empty
    return [new((*layers.input.shape[:2], layers.directions * layers.hx[0].shape[2])),
            *(new(state.shape) for state in layers.hx),
            *(new(sizes) for sizes in (layers.kept_sizes() if keeps else ()))]


def _gradients_of(layers, wanted, gradients, create_graph):
    """The gradients for the tensors that are wanted by those of the results, of which some are
    None, by torch's own functions."""
    made = layers.call(_FUNCTIONS[layers.kind])
    known = [i for i, g in enumerate(gradients) if g is not None]
    tensors = [t for t, w in zip(layers.tensors, wanted, strict=True) if w]
    found = torch.autograd.grad([made[i] for i in known], tensors, [gradients[i] for i in known],
                                create_graph=create_graph, allow_unused=True)
    return [torch.zeros_like(t) if g is None else g for g, t in zip(found, tensors, strict=True)]


def _run_backward(kind, wanted, gradients, kept, *given):
    layers = _Layers(kind, *given)
    with torch.enable_grad():
        leaves = [t.detach().requires_grad_(w)
                  for t, w in zip(layers.tensors, wanted, strict=True)]
        return _gradients_of(layers.of(leaves), wanted, gradients, False)


def _backward_shapes(kind, wanted, gradients, kept, *given):
    tensors = _Layers(kind, *given).tensors
    return [t.new_empty(t.shape) for t, w in zip(tensors, wanted, strict=True) if w]


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, layers, *tensors):
        layers = layers.of(tensors)
        kind, *given = layers
        made = torch.ops.lazuli.recurrent(kind, True, *given)
        results, kept = made[:1 + len(layers.hx)], made[1 + len(layers.hx):]
        # The tensors are saved apart: the context would hold them in a cycle.
        ctx.layers = layers.of([None] * len(tensors))
        ctx.save_for_backward(*tensors, *kept)
        ctx.set_materialize_grads(False)
        return tuple(results)

    @staticmethod
    def backward(ctx, *gradients):
        count, wanted = len(ctx.layers.tensors), list(ctx.needs_input_grad[1:])
        saved = ctx.saved_tensors
        layers = ctx.layers.of(saved[:count])
        if torch.is_grad_enabled():  # for gradients of gradients
            found = _gradients_of(layers, wanted, gradients, True)
        else:
            kind, *given = layers
            found = torch.ops.lazuli.recurrent_backward(
                kind, wanted, gradients, list(saved[count:]), *given)
        found = iter(found)
        return None, *(next(found) if w else None for w in wanted)


def _autograd(kind, keeps, *given):
    layers = _Layers(kind, *given)
    if torch.is_grad_enabled() and any(t.requires_grad for t in layers.tensors):
        return list(_Function.apply(layers, *layers.tensors))
    with torch._C._AutoDispatchBelowAutograd():
        return torch.ops.lazuli.recurrent(kind, keeps, *given)


_LIBRARY.impl("recurrent", _run, "CPU")
_LIBRARY.impl("recurrent", _autograd, "Autograd")
_LIBRARY.impl("recurrent_backward", _run_backward, "CPU")
_LIBRARY.impl("recurrent_backward", torch.library.fallthrough_kernel, "Autograd")
torch.library.register_fake("lazuli::recurrent", _shapes, lib=_LIBRARY)
torch.library.register_fake("lazuli::recurrent_backward", _backward_shapes, lib=_LIBRARY)


def _is_whole(tensors):
    """Whether lazuli takes torch's function as one. It does not mix dtypes as autocast lets torch
    do."""
    first = tensors[0]
    return (first.dim() == 3 and first.is_floating_point() and
            all(t.dtype == first.dtype and t.device.type == "cpu" for t in tensors) and
            not torch.is_autocast_enabled("cpu") and
            torch._C._functorch.maybe_current_level() is None)


def _with_dropout(kind, x, hx, params, biases, layers, dropout, bidirectional):
    """[output, last states...] of one layer after the other, and dropout between them, which torch
    loses where it traces layers of several steps."""
    each, directions, last = len(params) // layers, 2 if bidirectional else 1, []
    for layer in range(layers):
        first = [h[layer * directions:(layer + 1) * directions] for h in hx]
        x, *states = torch.ops.lazuli.recurrent(
            kind, False, x, first, params[layer * each:(layer + 1) * each], biases, 1,
            bidirectional)
        last.append(states)
        if layer + 1 < layers:
            x = torch.dropout(x, dropout, True)
    return [x, *map(torch.cat, zip(*last, strict=True))]


def _whole(kind, function):
    """A function that is torch's, or the one above where this can be."""

    def layers(*given, **named):
        if len(given) != 9 or named or not isinstance(given[2], (list, tuple)):  # packed sequences
            return function(*given, **named)
        x, hx, params, biases, count, dropout, train, bidirectional, batch_first = given
        hx = list(hx) if kind == "lstm" else [hx]
        if not _is_whole([x, *hx, *params]):
            return function(*given)
        x = x.transpose(0, 1) if batch_first else x
        if dropout > 0 and train and count > 1:
            output, *last = _with_dropout(kind, x, hx, list(params), biases, count, dropout,
                                          bidirectional)
        else:
            output, *last = torch.ops.lazuli.recurrent(kind, False, x, hx, list(params), biases,
                                                       count, bidirectional)
        return (output.transpose(0, 1) if batch_first else output, *last)

    return layers


# Of dynamo's graphs, and of exported ones.
WHOLE = {function: _whole(kind, function) for kind, function in _FUNCTIONS.items()}
WHOLE |= {getattr(torch.ops.aten, kind).input: WHOLE[f] for kind, f in _FUNCTIONS.items()}


@contextlib.contextmanager
def whole(gm):
    """Within this, recurrent layers of dynamo's graph, or of an exported one, are traced as one
    function each."""
    nodes = {n: n.target for g in gm.modules() if isinstance(g, torch.fx.GraphModule)
             for n in g.graph.nodes if n.op == "call_function" and n.target in WHOLE}
    owners = {n.graph.owning_module for n in nodes}
    for node, function in nodes.items():
        node.target = WHOLE[function]
    try:
        for owner in owners:
            owner.recompile()
        yield
    finally:
        for node, function in nodes.items():
            node.target = function
        for owner in owners:
            owner.recompile()


# --- the functions in lazuli


class _Saved:
    """The tensors that lazuli saves while it records layers, which it does cell by cell: what the
    product with weight_ih reads, then the loop's operands and results."""

    def __init__(self, layers):
        self.layers, self.tensors = layers, []
        states, kind = len(layers.hx), layers.kind
        self.result = 2 + 2 + states + (kind == "gru") + layers.projected
        self.first_kept = self.result + 1 + states
        self.each = self.first_kept + layers.kept

    def record(self, unpack):
        """(leaves, what lazuli's function gives of them)"""
        with lz.enable_grad(), saved_tensors_hooks(self._pack, unpack):
            leaves = [t.detach().requires_grad_() for t in self.layers.tensors]
            made = self.layers.of(leaves).call(getattr(lz, self.layers.kind))
        if len(self.tensors) != self.each * len(self.layers.cells):
            raise lz.UnimplementedError(f"lazuli saves {len(self.tensors)} tensors of the layers")
        return leaves, made

    def _pack(self, tensor):
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def kept(self, output):
        made = []
        for i, (layer, direction) in enumerate(self.layers.cells):
            of_cell = self.tensors[i * self.each:(i + 1) * self.each]
            made += of_cell[:1] if layer > 0 and direction == 0 else []
            made += of_cell[self.first_kept:]
        return [t.detach() for t in [*made, output]]

    def given(self, kept):
        """{place: tensor} of what was kept, and of the layers' results, which are what the next one
        was given."""
        layers, made = self.layers, {}
        *kept, output = kept
        kept, inputs = iter(kept), {layers.layers: output}
        for i, (layer, direction) in enumerate(layers.cells):
            if layer > 0:
                inputs[layer] = next(kept) if direction == 0 else inputs[layer]
                made[i * self.each] = inputs[layer]
            for place in range(self.first_kept, self.each):
                made[i * self.each + place] = next(kept)
        size = output.shape[2] // layers.directions
        for i, (layer, direction) in enumerate(layers.cells):
            made[i * self.each + self.result] = inputs[layer + 1].narrow(2, direction * size, size)
        return made


def recurrent(kind, keeps, *given):
    layers = _Layers(kind, *given)
    if not keeps:
        return layers.call(getattr(lz, kind))
    saved = _Saved(layers)
    _, made = saved.record(lambda place: saved.tensors[place])
    return [t.detach() for t in made] + saved.kept(made[0])


def recurrent_backward(kind, wanted, gradients, kept, *given):
    """What is recorded of the layers again is used by nobody, and no part of the program."""
    saved = _Saved(_Layers(kind, *given))
    known = saved.given(kept)
    leaves, made = saved.record(
        lambda place: known[place] if place in known else saved.tensors[place])
    some = [i for i, g in enumerate(gradients) if g is not None]
    return list(lz.autograd.grad([made[i] for i in some],
                                 [t for t, w in zip(leaves, wanted, strict=True) if w],
                                 [gradients[i] for i in some]))
