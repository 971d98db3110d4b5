#!/usr/bin/env python3
"""Layers of torch and lazuli with the same weights give the same results, gradients, texts and errors.

    torch_layers_test.py FOLDER      FOLDER holds the package lazuli, as build/PRESET/python does

A case is an expression that makes the layer, shapes of its inputs, and how it is called; state dicts must have the same keys, and
torch's is loaded. Layers run in evaluation unless a case says otherwise: random numbers are not torch's.
"""

import os
import sys

import numpy as np
import torch
from cases import report

sys.path.insert(0, sys.argv[1])
os.environ.setdefault("PJRT_DEVICE", "interpreter")
import lazuli  # noqa: E402

KEY, PLANE = (2, 4, 9), (2, 4, 5, 6)
VOLUME = (2, 4, 5, 5, 5)


def case(make, *shapes, call=lambda library, layer, *inputs: layer(*inputs), train=False):
    return make, shapes, call, train


def to_size(*size):
    return lambda library, layer, x: layer(x, output_size=size)


def masked(library, layer, q, k, v):
    return layer(q, k, v, average_attn_weights=False, attn_mask=library.ones(5, 7, dtype=library.bool).triu(1))


def padded(library, layer, q, k, v):
    return layer(q, k, v, key_padding_mask=library.tensor([[False] * 6 + [True], [False] * 5 + [True] * 2]))


def later_hidden(library, layer, source, target):
    return layer(source, target, tgt_mask=library.nn.Transformer.generate_square_subsequent_mask(4))


def to_signs(library, loss, *inputs):
    """Losses whose targets are 1 and -1."""
    return loss(*inputs[:-1], library.sign(inputs[-1].detach()))


def to_classes(library, loss, x):
    return loss(x, library.tensor([0, 2, 1, 1]))


def to_sets(library, loss, x):
    return loss(x, library.tensor([[0, 2, -1], [1, -1, 0], [0, 1, 2], [-1, 0, 0]]))


CASES = [
    case("Conv1d(4, 6, 3)", KEY), case("Conv1d(4, 6, 3)", (4, 9)), case("Conv1d(4, 6, 3, groups=3)", KEY),
    case("Conv1d(4, 6, 3, stride=2, padding=1, groups=2, bias=False)", KEY), case("Conv1d(4, 6, 4, padding='same', dilation=2)", (2, 4, 12)),
    case("Conv1d(4, 6, 3, padding='same', stride=2)", KEY), case("Conv1d(4, 6, 3, padding=2, padding_mode='circular')", KEY),
    case("Conv3d(4, 6, 3)", VOLUME), case("Conv3d(4, 6, (1, 2, 3), padding='same', dilation=(1, 2, 1))", VOLUME),
    case("Conv3d(4, 6, 3, padding=1, padding_mode='replicate')", VOLUME), case("ConvTranspose1d(4, 6, 3, stride=2)", KEY),
    case("ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1)", PLANE), case("ConvTranspose2d(4, 6, 3, dilation=2, bias=False)", PLANE),
    case("ConvTranspose2d(4, 6, 3, 2, 1)", PLANE, call=to_size(10, 12)), case("ConvTranspose2d(4, 6, 3, 2, 1)", PLANE, call=to_size(14, 12)),
    case("ConvTranspose3d(4, 6, 2, stride=2, groups=2)", VOLUME),
    *(case(f"{kind}({arguments})", shape) for kind, shape in (("MaxPool1d", KEY), ("MaxPool3d", VOLUME), ("AvgPool1d", KEY), ("AvgPool3d", VOLUME))
      for arguments in ("kernel_size=2", "kernel_size=3, stride=2, padding=1", "kernel_size=2, ceil_mode=True")),
    case("MaxPool3d(2, return_indices=True)", VOLUME), case("MaxPool3d(2, dilation=2)", VOLUME), case("AdaptiveMaxPool1d(3)", KEY),
    case("AdaptiveMaxPool2d((3, None))", PLANE), case("AdaptiveMaxPool2d(3, return_indices=True)", PLANE), case("AdaptiveMaxPool3d(2)", VOLUME),
    case("AdaptiveAvgPool1d(3)", KEY), case("AdaptiveAvgPool3d((2, 2, 2))", VOLUME),
    *(case(f"{kind}()", PLANE) for kind in ("Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout")),
    case("Dropout1d()", PLANE), case("Dropout1d()", KEY), case("MaxPool1d(2, dilation=2, return_indices=True)", KEY), case("CosineSimilarity()", (2, 3), (2, 3)), case("PairwiseDistance(1.0)", (2, 3), (2, 3)), case("Fold((4, 4), 2, stride=2)", (2, 12, 4)),
    case("Unfold(2)", PLANE), case("Upsample(scale_factor=2)", PLANE), case("Upsample((3, 5), mode='bilinear', align_corners=True)", PLANE),
    case("UpsamplingNearest2d(scale_factor=2)", PLANE), case("UpsamplingBilinear2d(scale_factor=2)", PLANE), case("PixelShuffle(2)", PLANE),
    case("PixelUnshuffle(2)", (2, 1, 4, 4)), case("ChannelShuffle(2)", PLANE), case("ZeroPad2d((1, 2, 0, 1))", PLANE), case("ZeroPad1d(1)", KEY),
    case("ConstantPad1d(2, 3.5)", KEY), case("ReflectionPad1d(9)", KEY), case("ReflectionPad2d((1, 2, 3, 0))", PLANE),
    case("ReplicationPad3d(1)", VOLUME), case("CircularPad2d(1)", PLANE),
    *(case(f"InstanceNorm{arguments}", shape, train=train) for train in (False, True) for arguments, shape in (
        ("1d(4)", KEY), ("2d(4, affine=True, track_running_stats=True)", PLANE), ("3d(4)", VOLUME), ("2d(2)", (2, 5, 4)))),
    case("Bilinear(3, 4, 5)", (2, 3), (2, 4)), case("EmbeddingBag(10, 3)", call=lambda library, layer: layer(library.tensor([[1, 2, 3], [4, 5, 1]]))),
    case("EmbeddingBag(10, 3, mode='sum', padding_idx=2)", call=lambda library, layer: layer(library.tensor([1, 2, 3, 4]), library.tensor([0, 2]))),
    case("MultiheadAttention(8, 2)", (5, 2, 8), (7, 2, 8), (7, 2, 8)), case("MultiheadAttention(8, 2)", (5, 8), (7, 8), (7, 8)),
    case("MultiheadAttention(8, 2, batch_first=True)", (2, 5, 8), (2, 7, 8), (2, 7, 8), call=masked),
    case("MultiheadAttention(8, 2, bias=False)", (5, 2, 8), (7, 2, 8), (7, 2, 8), call=padded),
    case("MultiheadAttention(8, 2, kdim=6, vdim=4)", (5, 2, 8), (7, 2, 6), (7, 2, 4)),
    *(case(f"Transformer{kind}Layer(8, 2, 16, dropout=0.0, activation='gelu', batch_first=True, norm_first={first})", *shapes, train=train)
      for train in (False, True) for first in (False, True) for kind, shapes in (("Encoder", [(2, 5, 8)]), ("Decoder", [(2, 5, 8), (2, 6, 8)]))),
    case("TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), 2)", (2, 5, 8)),
    case("LocalResponseNorm(3, k=2.0)", PLANE), case("Softmax2d()", PLANE), case("Softmax2d()", (2, 3)), case("Unflatten(1, (2, 2))", PLANE),
    *(case(loss, (4, 3), (4, 3), call=to_signs) for loss in ("HingeEmbeddingLoss(2.0)", "SoftMarginLoss(reduction='sum')")),
    case("CosineEmbeddingLoss(0.1)", (4, 3), (4, 3), (4,), call=to_signs), case("MarginRankingLoss(reduction='none')", *[(4, 3)] * 3, call=to_signs),
    case("GaussianNLLLoss(full=True)", *[(4, 3)] * 3, call=lambda library, loss, x, y, v: loss(x, y, v.exp())),
    case("PoissonNLLLoss(full=True)", *[(4, 3)] * 2, call=lambda library, loss, x, y: loss(x, y.exp())), case("TripletMarginLoss(1.5, swap=True)", *[(4, 3)] * 3),
    *(case(loss, (4, 3), call=to_classes) for loss in ("MultiMarginLoss(1, 0.5)", "CrossEntropyLoss(None, None, 1, None, 'sum', 0.1)", "NLLLoss()")),
    case("MultiLabelMarginLoss()", (4, 3), call=to_sets), case("MSELoss(False)", (4, 3), (4, 3)), case("KLDivLoss(None, None, 'sum', True)", (4, 3), (4, 3)),
    case("Transformer(8, 2, 1, 2, 16, 0.0)", (5, 2, 8), (4, 2, 8), train=True, call=later_hidden),
]


def outcome(library, make, arrays, call, train, state):
    """(text, state's keys, results, gradients), or the exception."""
    try:
        layer = eval(f"nn.{make}", {"nn": library.nn})
    except Exception as error:
        return error
    if state is not None:
        layer.load_state_dict({name: library.tensor(value) for name, value in state.items()})
    layer.train(train)
    inputs = [library.tensor(a) for a in arrays]
    for x in inputs:
        x.requires_grad_()
    try:
        results = call(library, layer, *inputs)
    except Exception as error:
        return error
    results = [r for r in (results if isinstance(results, tuple) else (results,)) if r is not None]
    if results[0].requires_grad:
        weights = np.random.default_rng(1).standard_normal(tuple(results[0].shape)).astype(np.float32)
        (results[0] * library.tensor(weights)).sum().backward()
    gradients = [p.grad for p in (*inputs, *layer.parameters())]
    text = repr(layer).replace("NonDynamicallyQuantizable", "")  # which torch calls a layer that it does not quantise
    return text, list(layer.state_dict()), [r.detach().numpy() for r in results], [None if g is None else g.numpy() for g in gradients]


def difference(make, shapes, call, train):
    """How the two differ; "" if they do not."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    torch.manual_seed(0)
    state = None
    try:
        state = {name: value.numpy() for name, value in eval(f"nn.{make}", {"nn": torch.nn}).state_dict().items()}
    except Exception:
        pass
    theirs, ours = (outcome(library, make, arrays, call, train, state) for library in (torch, lazuli))
    if isinstance(theirs, Exception) or isinstance(ours, Exception):
        return "" if isinstance(theirs, Exception) and isinstance(ours, type(theirs)) else f"{ours!r} instead of {theirs!r}"
    for what, a, b in zip(("text", "state"), ours, theirs, strict=False):
        if a != b:
            return f"{what}: {a} instead of {b}"
    for what, a, b, tolerance in (("results", ours[2], theirs[2], 3e-5), ("gradients", ours[3], theirs[3], 1e-3)):
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            if (x is None) != (y is None) or x is not None and (x.shape != y.shape or not np.allclose(x, y, rtol=tolerance, atol=tolerance)):
                return f"{what} {i}: {x} instead of {y}"
    return ""


def check(make, *rest):
    why = difference(make, *rest)
    assert not why, why


sys.exit(report({f"{i} {make}": lambda a=(make, *rest): check(*a) for i, (make, *rest) in enumerate(CASES)}, "layers"))
