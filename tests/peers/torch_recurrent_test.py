#!/usr/bin/env python3
"""Recurrent layers beside PyTorch's, in f64: forms of input, packed sequences, gradients, errors, training.

Every case runs one layer with the same weights in both libraries and compares results, last states, and the first and second
gradients for input, states and weights. Four models train for 20 steps, and their losses must agree. jaxlib's XLA runs the HLO of each
kind of layer and of its gradient, with equal values.

Prints how many comparisons hold. Run as `torch_recurrent_test.py FOLDER_OF_THE_PACKAGE`.
"""

import itertools
import pathlib
import sys
import warnings

import numpy as np
import torch
from cases import Comparisons

sys.path.insert(0, sys.argv[1])
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import lazuli as lz  # noqa: E402
from hlo_oracle import Oracle  # noqa: E402

T, B, I, H = 5, 3, 3, 4
LENGTHS = (2, 5, 1)
rng = np.random.default_rng(0)
comparisons = Comparisons()


def check(what, ours, theirs, rtol=1e-9):
    ours, theirs = (np.asarray(v.detach().numpy() if hasattr(v, "detach") else v) for v in (ours, theirs))
    if ours.shape == theirs.shape:
        comparisons.expect(np.allclose(ours, theirs, rtol=rtol, atol=rtol), f"{what}: {ours} is not {theirs}")
    else:
        comparisons.expect(False, f"{what}: {ours.shape}, not {theirs.shape}")


def pair_of(kind, **options):
    """A layer of both libraries with the same weights."""
    theirs = getattr(torch.nn, kind)(I, H, **options).double()
    ours = getattr(lz.nn, kind)(I, H, **options).double()
    assert repr(ours) == repr(theirs), (repr(ours), repr(theirs))
    ours.load_state_dict({name: lz.tensor(value.numpy()) for name, value in theirs.state_dict().items()})
    return ours, theirs


def flat(value):
    """The tensors of results and states, one after the other."""
    if isinstance(value, (torch.nn.utils.rnn.PackedSequence, lz.nn.utils.rnn.PackedSequence)):
        return [value.data]
    return [x for v in value for x in flat(v)] if isinstance(value, (tuple, list)) else [value]


def gradients(lib, outputs, inputs):
    """First gradients of a cubic function of the outputs, and the gradients of their squares."""
    first = lib.autograd.grad(sum((y ** 3).sum() for y in flat(outputs)), inputs, create_graph=True)
    return [*first, *lib.autograd.grad(sum((g ** 2).sum() for g in first), inputs)]


def compare(what, kind, options, form, with_states):
    ours, theirs = pair_of(kind, **options)
    batch_first = options.get("batch_first", False)
    dims = (T, I) if form == "one" else (B, T, I) if batch_first else (T, B, I)
    x, results = rng.standard_normal(dims), []
    directions = 2 if options.get("bidirectional") else 1
    cells, hidden = options.get("num_layers", 1) * directions, options.get("proj_size") or H
    batch = () if form == "one" else (B,)
    states = [rng.standard_normal((cells, *batch, size)) for size in ((hidden, H) if kind == "LSTM" else (hidden,))]
    for lib, layer in ((lz, ours), (torch, theirs)):
        tensors = [lib.tensor(v, requires_grad=True) for v in (x, *(states if with_states else ()))]
        given, hx = tensors[0], None
        if with_states:
            hx = tuple(tensors[1:]) if kind == "LSTM" else tensors[1]
        if form.startswith("packed"):
            utils = lib.nn.utils.rnn
            lengths = sorted(LENGTHS, reverse=True) if form == "packed sorted" else list(LENGTHS)
            given = utils.pack_padded_sequence(given, lengths, batch_first, form == "packed sorted")
        outputs = layer(given, hx)
        inputs = [*tensors, *layer.parameters()]
        first = lib.autograd.grad(sum((y ** 2).sum() for y in flat(outputs)), inputs, retain_graph=True)
        results.append([*flat(outputs), *first, *gradients(lib, outputs, inputs)])
    for i, (a, b) in enumerate(zip(*results, strict=True)):
        check(f"{what}, value {i}", a, b, 1e-7)


def layers():
    for kind in ("RNN", "LSTM", "GRU"):
        variants = [{}, {"num_layers": 2, "bidirectional": True, "batch_first": True}, {"bias": False}]
        variants += [{"nonlinearity": "relu"}] if kind == "RNN" else []
        variants += [{"proj_size": 2, "num_layers": 2, "bidirectional": True}] if kind == "LSTM" else []
        for options, form in itertools.product(variants, ("batch", "one", "packed", "packed sorted")):
            compare(f"{kind} {options} {form}", kind, options, form, with_states=form != "packed sorted")


def packing():
    x, element = rng.standard_normal((T, B, 2)), rng.standard_normal(7)
    for batch_first, enforce in itertools.product((False, True), repeat=2):
        lengths = sorted(LENGTHS, reverse=True) if enforce else LENGTHS
        results = []
        for lib in (lz, torch):
            utils, given = lib.nn.utils.rnn, lib.tensor(np.swapaxes(x, 0, 1).copy() if batch_first else x)
            packed = utils.pack_padded_sequence(given, lib.tensor(lengths), batch_first, enforce)
            other = utils.PackedSequence(packed.data * 2, *packed[1:])
            padded, found = utils.pad_packed_sequence(other, batch_first, -1.0, 8)
            results.append([*packed[:2], padded, found, *utils.unpack_sequence(packed), packed.float().data,
                            *(() if enforce else packed[2:])])
        for a, b in zip(*results, strict=True):
            check(f"packing {batch_first} {enforce}", a, b)
    sequences = [lib.nn.utils.rnn.pack_sequence([lib.tensor(element[:n]) for n in LENGTHS], enforce_sorted=False)
                 for lib in (lz, torch)]
    check("pack_sequence", sequences[0].data, sequences[1].data)


MISTAKES = {
    "size": lambda lib: lib.nn.LSTM(I, 0), "layers": lambda lib: lib.nn.GRU(I, H, 0), "type": lambda lib: lib.nn.RNN("3", H),
    "projection": lambda lib: lib.nn.LSTM(I, H, proj_size=H), "nonlinearity": lambda lib: lib.nn.RNN(I, H, nonlinearity="x"),
    "dropout": lambda lib: lib.nn.LSTM(I, H, dropout=2), "rank": lambda lib: lib.nn.LSTM(I, H)(lib.zeros(2, 2, 2, 3)),
    "width": lambda lib: lib.nn.GRU(I, H)(lib.zeros(2, 2, 4)), "no steps": lambda lib: lib.nn.GRU(I, H)(lib.zeros(0, 2, 3)),
    "dtype": lambda lib: lib.nn.RNN(I, H)(lib.zeros(2, 2, 3, dtype=lib.float64)),
    "state": lambda lib: lib.nn.GRU(I, H)(lib.zeros(2, 2, 3), lib.zeros(1, 5, 4)),
    "state's rank": lambda lib: lib.nn.GRU(I, H)(lib.zeros(2, 2, 3), lib.zeros(5, 4)),
    "states": lambda lib: lib.nn.LSTM(I, H)(lib.zeros(2, 5, 3), (lib.zeros(1, 5, 4), lib.zeros(1, 2, 4))),
    "order": lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.zeros(4, 2, 1), [1, 2]),
    "length 0": lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.zeros(4, 2, 1), [1, 0]),
    "lengths": lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.zeros(4, 2, 1), [1]),
    "total": lambda lib: lib.nn.utils.rnn.pad_packed_sequence(lib.nn.utils.rnn.pack_sequence([lib.zeros(3)]), total_length=2),
}


def mistakes():
    """Each is refused by both, with torch's text after our layer's name."""
    for what, call in MISTAKES.items():
        texts = []
        for lib in (torch, lz):
            try:
                call(lib)
                texts.append(None)
            except (RuntimeError, ValueError, TypeError, IndexError) as error:
                texts.append(str(error).replace("lazuli.", "torch."))
        comparisons.expect(texts[1] is not None and texts[0].split(":")[-1].strip() in texts[1],
                           f"mistake '{what}': {texts[0]!r} is {texts[1]!r} here")


def language_model(lib, data):
    """A language model over 20 letters with two layers, clipped gradients, states that go on from step to step."""
    net = lib.nn.ModuleDict({"embed": lib.nn.Embedding(20, 6), "rnn": lib.nn.LSTM(6, 8, 2), "out": lib.nn.Linear(8, 20)})

    def loss(step, state):
        y, state = net["rnn"](net["embed"](data["letters"][step][:-1]), state)
        goal = data["letters"][step][1:].reshape(-1)
        return lib.nn.functional.cross_entropy(net["out"](y).reshape(-1, 20), goal), tuple(s.detach() for s in state)

    return net, loss


def classifier(lib, data):
    """A bidirectional GRU over packed sequences."""
    net = lib.nn.ModuleDict({"rnn": lib.nn.GRU(5, 7, bidirectional=True, batch_first=True), "out": lib.nn.Linear(14, 3)})

    def loss(step, _):
        packed = lib.nn.utils.rnn.pack_padded_sequence(data["series"][step], data["lengths"][step], True, False)
        _, last = net["rnn"](packed)
        return lib.nn.functional.cross_entropy(net["out"](lib.cat([last[0], last[1]], 1)), data["classes"][step]), None

    return net, loss


def speech(lib, data):
    """Connectionist temporal classification on top of an LSTM with projections."""
    net = lib.nn.ModuleDict({"rnn": lib.nn.LSTM(5, 8, proj_size=6), "out": lib.nn.Linear(6, 4)})

    def loss(step, _):
        y, _ = net["rnn"](data["series"][step].transpose(0, 1))
        log = lib.nn.functional.log_softmax(net["out"](y), -1)
        return lib.nn.functional.ctc_loss(log, data["labels"][step], (9,) * 4, (2,) * 4), None

    return net, loss


def cells(lib, data):
    """An LSTM cell in a loop of the program."""
    net = lib.nn.ModuleDict({"cell": lib.nn.LSTMCell(5, 6), "out": lib.nn.Linear(6, 3)})

    def loss(step, _):
        state = None
        for x in data["series"][step].unbind(1):
            state = net["cell"](x, state)
        return lib.nn.functional.cross_entropy(net["out"](state[0]), data["classes"][step]), None

    return net, loss


def training():
    steps = 20
    data = {"letters": rng.integers(0, 20, (steps, 9, 4)), "series": rng.standard_normal((steps, 4, 9, 5)),
            "lengths": rng.integers(1, 10, (steps, 4)), "classes": rng.integers(0, 3, (steps, 4)),
            "labels": rng.integers(1, 4, (steps, 4, 2))}
    for build in (language_model, classifier, speech, cells):
        losses, start = [], None
        for lib in (torch, lz):
            given = {name: [lib.tensor(v) for v in value] for name, value in data.items()}
            net, loss = build(lib, given)
            net.double()
            if start is None:
                start = {name: value.numpy().copy() for name, value in net.state_dict().items()}
            net.load_state_dict({name: lib.tensor(value) for name, value in start.items()})
            optimizer, state, seen = lib.optim.Adam(net.parameters(), 0.02), None, []
            for step in range(steps):
                optimizer.zero_grad()
                value, state = loss(step, state)
                value.backward()
                lib.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
                optimizer.step()
                seen.append(float(value))
            losses.append(seen)
        check(f"losses of {build.__name__}", losses[1], losses[0], 1e-7)


def on_xla():
    """The HLO of each kind of layer and of its gradient runs on XLA with equal values."""
    oracle = Oracle()
    x, lengths, zeros = lz.tensor(rng.standard_normal((T, B, I)).astype(np.float32)), lz.tensor(LENGTHS), lz.zeros(2, B, H)
    for kind, function in (("LSTM", lz.lstm), ("GRU", lz.gru), ("RNN", lz.rnn_tanh), ("RNN", lz.rnn_relu)):
        layer = getattr(lz.nn, kind)(I, H, bidirectional=True)

        def step(x, lengths, zeros, *weights, function=function):
            weights = [weight.detach().requires_grad_() for weight in weights]
            hx = [zeros, zeros] if function is lz.lstm else zeros
            y, *_ = function(x, hx, weights, True, 1, 0.0, True, True, False, lengths=lengths)
            return [y.detach(), *lz.autograd.grad((y ** 2).sum(), weights)]

        inputs = [t.detach() for t in (x, lengths, zeros, *layer._flat_weights)]
        theirs = oracle.run(lz.hlo.HloModule.trace(inputs, step).to_string(), [t.numpy() for t in inputs])
        for i, (a, b) in enumerate(zip(step(*inputs), theirs, strict=True)):
            check(f"XLA, {function.__name__}, result {i}", a, b, 1e-4)
    oracle.close()


def main():
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    for part in (layers, packing, mistakes, training, on_xla):
        part()
    sys.exit(comparisons.finish())


if __name__ == "__main__":
    main()
