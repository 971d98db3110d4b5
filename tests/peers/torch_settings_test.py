#!/usr/bin/env python3
"""Attributes of a built module that torch's forward() reads have the same effect in lazuli, or setting them is an error.

    torch_settings_test.py FOLDER [NAME...]      FOLDER holds the package lazuli, as build/PRESET/python does

Every entry of torch's database of modules, and those of MORE, is made twice with the same state; each public attribute that torch's
module keeps gets other values of its kind, one at a time. Where torch computes with the value, lazuli gives the same elements and the
same buffers; what torch refuses, lazuli may refuse.
"""

import os
import pathlib
import sys
import types
import warnings

sys.path.insert(0, sys.argv[1])
os.environ.setdefault("PJRT_DEVICE", "interpreter")
import torch  # noqa: E402
from torch_modules_test import Pair, entries  # noqa: E402
from torch_opinfo_test import Sparse, compare, to_lazuli  # noqa: E402
import lazuli as lz  # noqa: E402

# Modules that the database lacks: arguments and the shape of the input, or what makes the inputs; random ones are asked for all or nothing.
MORE = {"AdaptiveLogSoftmaxWithLoss": ((20, 6, [2, 4]), lambda: (torch.rand(4, 20), torch.tensor([0, 1, 3, 5]))),
        "EmbeddingBag": ((4, 3), lambda: (torch.tensor([[0, 1], [3, 1]]),)), "Hardsigmoid": ((), (3, 4)),
        "MaxUnpool1d": ((2,), lambda: (torch.rand(1, 1, 2), torch.tensor([[[0, 3]]]))),
        "MaxUnpool2d": ((2,), lambda: (torch.rand(1, 1, 2, 2), torch.tensor([[[[0, 3], [9, 11]]]]))),
        "PairwiseDistance": ((), lambda: (torch.rand(3, 4), torch.rand(3, 4))), "RReLU": ((0.1, 0.3), (3, 4)),
        "TripletMarginLoss": ((), lambda: (torch.rand(3, 4), torch.rand(3, 4), torch.rand(3, 4))),
        "TripletMarginWithDistanceLoss": ((), lambda: (torch.rand(3, 4), torch.rand(3, 4), torch.rand(3, 4))),
        "UpsamplingBilinear2d": ((None, 2), (1, 2, 3, 3)), "UpsamplingNearest2d": ((None, 2), (1, 2, 3, 3)),
        "AlphaDropout": ((0.5,), (3, 4)), "CELU": ((), (3, 4)), "ChannelShuffle": ((2,), (2, 4, 3, 3)), "ConstantPad1d": ((1, 2.0), (2, 3, 4)),
        "ConstantPad2d": ((1, 2.0), (2, 3, 4, 4)), "CosineSimilarity": None, "Dropout": ((0.5,), (3, 4)), "Dropout1d": ((0.5,), (2, 3, 4)),
        "Dropout2d": ((0.5,), (2, 3, 4, 4)), "Dropout3d": ((0.5,), (2, 3, 4, 4, 4)), "FeatureAlphaDropout": ((0.5,), (2, 3, 4)),
        "Flatten": ((), (2, 3, 4)), "Fold": (((4, 4), 2), (1, 8, 9)), "LPPool3d": ((2, 2), (1, 2, 4, 4, 4)), "PixelShuffle": ((2,), (1, 16, 4, 4)),
        "PixelUnshuffle": ((2,), (1, 2, 8, 8)), "Threshold": ((0.1, 2.0), (3, 4)), "Unflatten": ((1, (2, 2)), (3, 4)),
        "Unfold": ((2,), (1, 2, 5, 5)), "Upsample": ((None, 2.0), (1, 2, 4, 4)), "ZeroPad2d": ((1,), (1, 2, 4, 4))}
WORDS = {"mode": ("nearest", "bilinear", "sum", "max", "mean"), "padding_mode": ("circular", "reflect", "replicate"), "padding": ("same", "valid"),
         "reduction": ("sum", "none", "mean"), "approximate": ("tanh", "none"), "nonlinearity": ("relu", "tanh")}
LEFT_OUT = {"training", "forward", "recompute_scale_factor"}  # the last takes no numbers
# What lazuli refuses and torch does not: sizes of 0, sizes that the weights do not have, a norm without epsilon, bounds that make another layer.
REFUSED = {"output_size", "input_size", "hidden_size", "num_layers", "proj_size", "eps", "min_val", "max_val"}
# Targets of the database hold the other blank, and clusters that the weights do not have, which are mistakes.
UNLIKE = {("CTCLoss", "blank"), ("AdaptiveLogSoftmaxWithLoss", "cutoffs"), ("AdaptiveLogSoftmaxWithLoss", "shortlist_size")}
RANDOM = ("Dropout", "RReLU", "FractionalMaxPool", "Transformer", "MultiheadAttention")


def alternatives(name, value):
    """Other values of an attribute's kind."""
    if name in WORDS:
        return [word for word in WORDS[name] if word != value] + ([] if isinstance(value, str) else numbers(value))
    return numbers(value)


def numbers(value):
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1]
    if isinstance(value, float):
        return [0.0, value * 0.5, value + 1.0]
    if value is None:
        return [1, 0.25]
    if isinstance(value, (tuple, list)) and value and all(isinstance(v, int) for v in value):
        return [type(value)(v + 1 for v in value), value[0] + 1, value[0]]
    return []


class Sample:
    """What the database calls a sample."""

    def __init__(self, arguments, *inputs):
        self.constructor_input = types.SimpleNamespace(args=arguments, kwargs={})
        self.forward_input = types.SimpleNamespace(args=inputs, kwargs={})


def samples():
    """(name, sample, training) of all."""
    for training in (True, False):
        for info, name in entries():
            torch.manual_seed(0)
            for sample in info.module_inputs_func(info, "cpu", torch.float32, False, training)[:3]:
                yield name, sample, training
        for name, row in MORE.items():
            if row is not None:
                torch.manual_seed(0)
                inputs = row[1]() if callable(row[1]) else (torch.rand(row[1]),)
                yield name, Sample(row[0], *inputs), training


def deterministic(name, attribute, value, training):
    if not training or not any(word in name for word in RANDOM):
        return True
    return attribute == "p" and value in (0.0, 1.0)


def outcome(pair, attribute, value):
    """What torch gives, or None where it refuses, and what lazuli does: a result, or the exception of setting or of calling."""
    whole, mine = pair.inputs()
    try:
        setattr(pair.theirs, attribute, value)
        expected = pair.theirs(*whole[0], **whole[1])
    except Exception:
        return None
    setattr(pair.ours, attribute, value)
    compare(pair.ours(*mine[0], **mine[1]), expected, "values")
    compare(list(pair.ours.buffers()), list(pair.theirs.buffers()), "buffers")
    return expected


def attributes_of(module):
    return {name: value for name, value in vars(module).items() if not name.startswith("_") and name not in LEFT_OUT}


def main():
    warnings.simplefilter("ignore")
    wrong, tried, names = {}, 0, set(sys.argv[2:])
    for name, sample, training in samples():
        if (names and name not in names) or not hasattr(lz.nn, name) or name.startswith("Lazy"):  # the layers, once they are called
            continue
        try:
            attributes = attributes_of(Pair(name, sample, training).theirs)
        except Sparse:
            continue
        for attribute, before in attributes.items():
            for value in alternatives(attribute, before):
                if not deterministic(name, attribute, value, training) or (name, attribute) in UNLIKE:
                    continue
                try:
                    pair = Pair(name, sample, training)
                    pair.load()
                    tried += outcome(pair, attribute, value) is not None
                except Exception as error:
                    if isinstance(error, lz.InvalidArgumentError) and attribute in REFUSED:
                        continue
                    wrong.setdefault((name, attribute), []).append(f"{value!r} training={training} {sample.constructor_input}: {type(error).__name__}: {error}")
    for (name, attribute), texts in wrong.items():
        print(f"{name}.{attribute}: {len(texts)}, as {texts[0]}"[:400])
    print(f"{tried} settings compared with torch, {len(wrong)} attributes differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
