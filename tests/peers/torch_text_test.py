#!/usr/bin/env python3
"""Tensors and modules are written as torch writes them: repr() under options, formats, layers with what they were made of.

    torch_text_test.py FOLDER [TENSORS [SEED]]      FOLDER holds the package lazuli, as build/PRESET/python does
"""

import random
import sys

import numpy as np
import torch

sys.path.insert(0, sys.argv[1])
import lazuli as lz  # noqa: E402

TENSORS = int(sys.argv[2]) if len(sys.argv) > 2 else 400
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 0

SHAPES = [(), (1,), (3,), (7,), (20,), (0,), (0, 3), (2, 0), (2, 3), (1, 1), (5, 6), (2, 3, 4), (2, 2, 2, 2), (1001,), (40, 30), (11, 11, 11),
          (13,), (30, 2)]
OPTIONS = ["", "", "", "", "precision=2", "precision=8", "precision=0", "threshold=5", "edgeitems=1, threshold=3", "edgeitems=0, threshold=3",
           "linewidth=20", "linewidth=200", "profile='short'", "profile='full'", "sci_mode=True", "sci_mode=False",
           "profile='short', precision=3, threshold=2"]
VALUES = {"small": "g.uniform(-3, 3, S)", "whole": "g.integers(-5, 100, S).astype(float)",
          "wide": "g.uniform(-1, 1, S) * 10.0 ** g.integers(-3, 4, S)", "tiny": "g.uniform(-1, 1, S) * 1e-6",
          "special": "np.where(g.random(S) < 0.4, g.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5], S), g.uniform(-3, 3, S))",
          "nan": "np.full(S, np.nan)", "zero": "g.choice([0.0, -0.0], S)"}
DTYPES = ["float32"] * 4 + ["float64", "float16", "bfloat16", "int64", "int32", "uint8", "int8", "bool", "complex64", "complex128"]

LAYERS = """nn.Linear(2, 3) | nn.Linear(2, 3, bias=False) | nn.Conv2d(1, 2, 3) | nn.Conv2d(1, 2, kernel_size=3, padding=(1, 0))
| nn.Conv2d(2, 4, (3, 2), stride=2, padding=1, dilation=2, groups=2, bias=False) | nn.MaxPool2d(2) | nn.MaxPool2d((2, 1), 1, ceil_mode=True)
| nn.AvgPool2d(2) | nn.AvgPool2d(3, 2, 1) | nn.AdaptiveAvgPool2d(1) | nn.AdaptiveAvgPool2d((2, 3)) | nn.BatchNorm1d(3)
| nn.BatchNorm2d(3, affine=False, momentum=0.2, track_running_stats=False) | nn.LayerNorm(3) | nn.LayerNorm((2, 3), elementwise_affine=False)
| nn.LayerNorm([2], bias=False) | nn.GroupNorm(2, 4) | nn.RMSNorm(4, eps=1e-5) | nn.Embedding(3, 4) | nn.Embedding(3, 4, padding_idx=1)
| nn.Flatten() | nn.Dropout(0.2) | nn.PReLU(3) | nn.Identity() | nn.ReLU() | nn.GELU() | nn.LeakyReLU(0.2) | nn.ELU() | nn.Softplus()
| nn.Hardtanh() | nn.Softmax(dim=1) | nn.LogSoftmax(-1) | nn.MSELoss(reduction='sum') | nn.CrossEntropyLoss(label_smoothing=0.1)
| nn.Sequential() | nn.ModuleList() | nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 1))) | Net() | nn.Module()
| nn.ModuleList([nn.Linear(1, 2), nn.Linear(1, 2), nn.ReLU(), nn.Sequential(nn.Linear(2, 2))]) | nn.Parameter(lib.ones(2))
| nn.ModuleList([nn.ModuleList([nn.ReLU(), nn.ReLU()])]) | nn.Linear(2, 3).in_features | nn.Conv2d(1, 2, 3).kernel_size
| nn.BatchNorm2d(4).num_features | nn.Dropout(0.3).p | nn.Linear(2, 3).extra_repr() | nn.Embedding(2, 3).embedding_dim
| f'{lib.tensor(1.5):.2f} {lib.tensor(3)} {lib.ones(2)} {nn.Parameter(lib.tensor(1.5))}'"""


def programs():
    rng = random.Random(SEED)
    for _ in range(TENSORS):
        shape, dtype, options, kind = rng.choice(SHAPES), rng.choice(DTYPES), rng.choice(OPTIONS), rng.choice(list(VALUES))
        values = VALUES[kind] if "float" in dtype or "complex" in dtype else "g.integers(0, 100, S)"
        array = {"bfloat16": "float32"}.get(dtype, dtype)
        values = f"({values}) * (1 + 1j)" if "complex" in dtype else values
        yield (f"g = np.random.default_rng({rng.randrange(10**6)}); S = {shape}\n"
               f"x = lib.from_numpy(np.asarray(({values})).astype({array!r})){'.to(lib.bfloat16)' if dtype == 'bfloat16' else ''}\n"
               f"{'x.requires_grad_()' if 'float' in dtype and rng.random() < 0.3 else ''}\n"
               f"lib.set_printoptions({options})\nr = repr(x)\nlib.set_printoptions(profile='default')")
    yield from (f"r = str({layer.strip()})" for layer in LAYERS.split("|"))


def outcome(text, lib):
    class Net(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.p, self.b = lib.nn.Linear(1, 2), lib.nn.Parameter(lib.ones(2)), lib.nn.Sequential(lib.nn.ReLU())

        def extra_repr(self):
            return "x=1\ny=2"

    names = {"lib": lib, "nn": lib.nn, "np": np, "Net": Net}
    with np.errstate(all="ignore"):
        exec(text, names)
    # Where a line ends before a note depends on the length of the package's name.
    return names["r"].replace("torch.", "").replace("lazuli.", "").replace(",\n       dtype", ", dtype").replace(",\n       requires", ", requires")


def main():
    different = total = 0
    for text in programs():
        total += 1
        expected, got = outcome(text, torch), outcome(text, lz)
        if got != expected:
            different += 1
            print(f"{text}\n--- torch\n{expected}\n--- lazuli\n{got}\n")
    print(f"{total - different} of {total} texts are torch's")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
