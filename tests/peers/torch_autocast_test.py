#!/usr/bin/env python3
"""Under autocast, functions choose the dtypes that PyTorch's choose, and models compute and train as PyTorch's do.

Every function gets arguments of each float dtype, and of mixed ones where it takes several tensors, in both libraries under
autocast("cpu"). The dtypes of its results must be PyTorch's, and the values must agree to the digits of the dtype. Three models train for
20 steps under autocast, and their losses must agree.

Prints how many comparisons hold. Run as `torch_autocast_test.py FOLDER_OF_THE_PACKAGE`.
"""

import pathlib
import sys
import warnings

import numpy as np
import torch
from cases import Comparisons

sys.path.insert(0, sys.argv[1])
import lazuli as lz  # noqa: E402

warnings.filterwarnings("ignore")
comparisons = Comparisons()
rng = np.random.default_rng(0)


def A(*dims):
    return rng.standard_normal(dims).astype("float32")


SQUARE, PAIR = A(4, 4), (A(3, 4), A(4, 5))
SPD = SQUARE @ SQUARE.T + 4 * np.eye(4, dtype="float32")
PROBABILITIES, TRUTH = 1 / (1 + np.exp(-A(3, 4))), (A(3, 4) > 0).astype("float32")
IMAGE, LABELS = A(2, 3, 6, 6), np.array([1, 0, 3])

# The functions that autocast knows, and some that it leaves alone; F is nn.functional.
CASES = {
    "matmul": (lambda t, F, x, y: t.matmul(x, y), PAIR),
    "@": (lambda t, F, x, y: x @ y, PAIR),
    "mm": (lambda t, F, x, y: x.mm(y), PAIR),
    "bmm": (lambda t, F, x, y: t.bmm(x, y), (A(2, 3, 4), A(2, 4, 5))),
    "addmm": (lambda t, F, b, x, y: t.addmm(b, x, y), (A(3, 5), *PAIR)),
    "baddbmm": (lambda t, F, b, x, y: t.baddbmm(b, x, y), (A(2, 3, 5), A(2, 3, 4), A(2, 4, 5))),
    "addbmm": (lambda t, F, b, x, y: t.addbmm(b, x, y), (A(3, 5), A(2, 3, 4), A(2, 4, 5))),
    "einsum": (lambda t, F, x, y: t.einsum("ij,jk->ik", x, y), PAIR),
    "tensordot": (lambda t, F, x, y: t.tensordot(x, y, dims=1), PAIR),
    "inner": (lambda t, F, x, y: t.inner(x, y), (A(3, 4), A(5, 4))),
    "linear": (lambda t, F, x, w, b: F.linear(x, w, b), (A(3, 4), A(5, 4), A(5))),
    "linear without bias": (lambda t, F, x, w: F.linear(x, w), (A(3, 4), A(5, 4))),
    "conv1d": (lambda t, F, x, w: F.conv1d(x, w), (A(2, 3, 6), A(4, 3, 2))),
    "conv2d": (lambda t, F, x, w, b: F.conv2d(x, w, b), (IMAGE, A(4, 3, 2, 2), A(4))),
    "conv3d": (lambda t, F, x, w: F.conv3d(x, w), (A(1, 2, 4, 4, 4), A(3, 2, 2, 2, 2))),
    "conv_transpose2d": (lambda t, F, x, w: F.conv_transpose2d(x, w), (IMAGE, A(3, 4, 2, 2))),
    "prelu": (lambda t, F, x, w: F.prelu(x, w), (A(3, 4), A(1))),
    "sdpa": (lambda t, F, q, k, v: F.scaled_dot_product_attention(q, k, v), (A(2, 3, 4), A(2, 5, 4), A(2, 5, 4))),
    "vecdot": (lambda t, F, x, y: t.linalg.vecdot(x, y), (A(3, 4), A(3, 4))),
    "multi_dot": (lambda t, F, x, y: t.linalg.multi_dot([x, y]), PAIR),
    "matrix_power": (lambda t, F, x: t.linalg.matrix_power(x, 3), (SQUARE,)),
    "cov": (lambda t, F, x: t.cov(x), (A(3, 8),)),
    "corrcoef": (lambda t, F, x: t.corrcoef(x), (A(3, 8),)),
    "mse_loss": (lambda t, F, x, y: F.mse_loss(x, y), (A(3, 4), A(3, 4))),
    "l1_loss": (lambda t, F, x, y: F.l1_loss(x, y), (A(3, 4), A(3, 4))),
    "smooth_l1_loss": (lambda t, F, x, y: F.smooth_l1_loss(x, y), (A(3, 4), A(3, 4))),
    "huber_loss": (lambda t, F, x, y: F.huber_loss(x, y), (A(3, 4), A(3, 4))),
    "kl_div": (lambda t, F, x, y: F.kl_div(x, y, reduction="sum"), (np.log(PROBABILITIES), PROBABILITIES)),
    "soft_margin_loss": (lambda t, F, x, y: F.soft_margin_loss(x, y), (A(3, 4), np.sign(A(3, 4)))),
    "hinge_embedding_loss": (lambda t, F, x, y: F.hinge_embedding_loss(x, y), (A(3, 4), np.sign(A(3, 4)))),
    "margin_ranking_loss": (lambda t, F, x, y, z: F.margin_ranking_loss(x, y, z), (A(4), A(4), np.sign(A(4)))),
    "triplet_margin_loss": (lambda t, F, x, y, z: F.triplet_margin_loss(x, y, z), (A(3, 4), A(3, 4), A(3, 4))),
    "cosine_embedding_loss": (lambda t, F, x, y, z: F.cosine_embedding_loss(x, y, z), (A(3, 4), A(3, 4), np.sign(A(3)))),
    "poisson_nll_loss": (lambda t, F, x, y: F.poisson_nll_loss(x, y), (A(3, 4), np.abs(A(3, 4)))),
    "binary_cross_entropy": (lambda t, F, x, y: F.binary_cross_entropy(x, y), (PROBABILITIES, TRUTH)),
    "binary_cross_entropy_with_logits": (lambda t, F, x, y: F.binary_cross_entropy_with_logits(x, y), (A(3, 4), TRUTH)),
    "cross_entropy": (lambda t, F, x, y: F.cross_entropy(x, y), (A(3, 4), LABELS)),
    "nll_loss": (lambda t, F, x, y: F.nll_loss(x, y), (A(3, 4), LABELS)),
    "multi_margin_loss": (lambda t, F, x, y: F.multi_margin_loss(x, y), (A(3, 4), LABELS)),
    "prod": (lambda t, F, x: x.prod(), (A(3, 4),)),
    "prod of a dim": (lambda t, F, x: x.prod(1), (A(3, 4),)),
    "trace": (lambda t, F, x: x.trace(), (SQUARE,)),
    "cdist": (lambda t, F, x, y: t.cdist(x, y), (A(3, 4), A(5, 4))),
    "quantile": (lambda t, F, x: t.quantile(x, 0.3), (A(3, 4),)),
    "rfft": (lambda t, F, x: t.fft.rfft(x).abs(), (A(3, 8),)),
    "inverse": (lambda t, F, x: t.inverse(x), (SPD,)),
    "cholesky": (lambda t, F, x: t.linalg.cholesky(x), (SPD,)),
    "svdvals": (lambda t, F, x: t.linalg.svdvals(x), (SPD,)),
    "qr": (lambda t, F, x: t.linalg.qr(x)[1].abs(), (SPD,)),
    "grid_sample": (lambda t, F, x, y: F.grid_sample(x, y, align_corners=True), (IMAGE, np.tanh(A(2, 4, 4, 2)))),
    "max_pool3d": (lambda t, F, x: F.max_pool3d(x, 2), (A(1, 2, 4, 4, 4),)),
    "avg_pool3d": (lambda t, F, x: F.avg_pool3d(x, 2), (A(1, 2, 4, 4, 4),)),
    "adaptive_avg_pool3d": (lambda t, F, x: F.adaptive_avg_pool3d(x, 2), (A(1, 2, 4, 4, 4),)),
    "cat": (lambda t, F, x, y: t.cat([x, y]), (A(3, 4), A(2, 4))),
    "stack": (lambda t, F, x, y: t.stack([x, y]), (A(3, 4), A(3, 4))),
    "hstack": (lambda t, F, x, y: t.hstack([x, y]), (A(3, 4), A(3, 4))),
    # What autocast leaves alone computes in the dtype of its arguments.
    "mv": (lambda t, F, x, y: t.mv(x, y), (A(3, 4), A(4))),
    "dot": (lambda t, F, x, y: t.dot(x, y), (A(4), A(4))),
    "softmax": (lambda t, F, x: x.softmax(-1), (A(3, 4),)),
    "layer_norm": (lambda t, F, x: F.layer_norm(x, (4,)), (A(3, 4),)),
    "max_pool2d": (lambda t, F, x: F.max_pool2d(x, 2), (IMAGE,)),
    "sum": (lambda t, F, x: x.sum(), (A(3, 4),)),
    "exp": (lambda t, F, x: x.exp(), (A(3, 4),)),
    "add": (lambda t, F, x, y: x + y, (A(3, 4), A(3, 4))),
    "outer": (lambda t, F, x, y: t.outer(x, y), (A(4), A(4))),
    "gelu": (lambda t, F, x: F.gelu(x), (A(3, 4),)),
    "interpolate": (lambda t, F, x: F.interpolate(x, scale_factor=2), (IMAGE,)),
}
DIGITS = {"float64": 1e-9, "float32": 1e-4, "bfloat16": 4e-2, "float16": 4e-3, "int64": 0}


def result(library, function, arrays, dtypes, narrow):
    """(dtype, values) of the function under autocast, or the type of its error."""
    make = lz.tensor if library is lz else torch.tensor
    tensors = [make(a) if a.dtype.kind == "i" else make(a).to(getattr(library, dtype)) for a, dtype in zip(arrays, dtypes)]
    try:
        with library.autocast("cpu", dtype=getattr(library, narrow)):
            y = function(library, library.nn.functional, *tensors)
            dtype = str(y.dtype).rpartition(".")[2]
            return dtype, np.asarray(y.double().tolist())
    except Exception as error:
        return type(error).__name__, None


def compare(name, function, arrays, dtypes, narrow):
    theirs, expected = result(torch, function, arrays, dtypes, narrow)
    if expected is None:  # torch refuses the mixture
        return
    ours, values = result(lz, function, arrays, dtypes, narrow)
    what = f"{name} of {', '.join(dtypes)} under {narrow}"
    comparisons.expect(ours == theirs, f"{what}: {ours}, not {theirs}")
    if ours == theirs:
        narrowest = max(DIGITS[d] for d in (*dtypes, theirs, narrow if theirs == narrow else theirs))
        comparisons.expect(np.allclose(values, expected, rtol=narrowest, atol=narrowest * 2), f"{what}: {values}, not {expected}")


for name, (function, arrays) in CASES.items():
    for narrow in ("bfloat16", "float16"):
        for dtype in ("float32", narrow, "float64"):
            compare(name, function, arrays, [dtype] * len(arrays), narrow)
        if len(arrays) > 1:
            compare(name, function, arrays, [narrow] + ["float32"] * (len(arrays) - 1), narrow)

# --- modules and trainings


def models(t):
    nn = t.nn
    return {
        "MLP": nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 4)),
        "CNN": nn.Sequential(nn.Unflatten(1, (2, 2, 2)), nn.Conv2d(2, 8, 2, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
                             nn.Flatten(), nn.Linear(72, 4)),
        "transformer": nn.Sequential(nn.Unflatten(1, (2, 4)), nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True),
                                     nn.Flatten(), nn.Linear(8, 4)),
    }


def losses(t, model, x, y):
    opt = t.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    found = []
    for _ in range(20):
        opt.zero_grad()
        with t.autocast("cpu"):
            loss = t.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        found.append(loss.item())
    return found


x, y = A(16, 8), rng.integers(0, 4, 16)
for name, theirs in models(torch).items():
    ours = models(lz)[name]
    ours.load_state_dict({key: lz.tensor(value.numpy()) for key, value in theirs.state_dict().items()})
    a, b = losses(lz, ours, lz.tensor(x), lz.tensor(y)), losses(torch, theirs, torch.tensor(x), torch.tensor(y))
    comparisons.expect(np.allclose(a, b, rtol=0.06, atol=0.02), f"losses of {name}: {a}, not {b}")
    comparisons.expect(a[-1] < 0.6 * a[0], f"losses of {name} do not fall: {a}")

for kind in ("LSTM", "RNN", "GRU"):
    for t, make in ((torch, torch.tensor), (lz, lz.tensor)):
        with t.autocast("cpu"):
            dtype = getattr(t.nn, kind)(8, 4)(make(A(5, 3, 8)))[0].dtype
        comparisons.expect(str(dtype).endswith("float32" if kind == "GRU" else "bfloat16"), f"{kind} of {t.__name__}: {dtype}")

sys.exit(comparisons.finish())
