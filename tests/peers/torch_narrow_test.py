#!/usr/bin/env python3
"""Floats of 16 bits, two libraries: what is summed, normalised, pooled or averaged is as near to f64 as torch has it, and so
are its gradients.

    torch_narrow_test.py FOLDER      FOLDER holds the package lazuli, as build/PRESET/python does
"""

import sys
import warnings

import numpy as np
import torch
from cases import report

sys.path.insert(0, sys.argv[1])
import lazuli  # noqa: E402

RNG = np.random.default_rng(0)
LONG = 70000  # beyond what f16 counts to
ARRAYS = {
    "ones": np.ones(LONG),
    "small": RNG.normal(0, 1, LONG),
    "large": RNG.uniform(250, 500, LONG),  # whose squares are beyond f16
    "signed": RNG.normal(0, 400, LONG),
}
TARGET = np.arange(LONG // 7) % 7
# On x of LONG elements; m is [LONG / 7, 7], p [1, 7, 100, 100], k the classes of m.
PROGRAMS = """
x[:100].sum()
x.mean()
m.mean(0)
m.mean(1)
x.var() / 64
m.std(0)
m.std(1)
x.norm() / 8
m.norm(dim=1)
t.logsumexp(x, 0) if on_torch else t.logsumexp(x, (0,))
x[:500].cumsum(0)
m.amax(0)
m.amin(1)
x.softmax(0) * 1000
m.softmax(1)
x.log_softmax(0)
F.layer_norm(x, [LONG])
F.layer_norm(m, [7])
F.rms_norm(m, [7], eps=1e-5)
F.group_norm(p, 7)
F.batch_norm(p, None, None, training=True) if on_torch else F.batch_norm(p, training=True)
F.avg_pool2d(p, 10)
F.avg_pool2d(p, 3, 2, 1)
F.avg_pool2d(p, 3, 2, 1, count_include_pad=False)
F.adaptive_avg_pool2d(p, 1)
F.adaptive_avg_pool2d(p, 3)
F.mse_loss(x / 8, x * 0)
F.l1_loss(x, x * 0)
F.smooth_l1_loss(x, x * 0)
F.huber_loss(x, x * 0)
F.kl_div(x, x * 0 + 0.25)
F.binary_cross_entropy_with_logits(x, x * 0)
F.cross_entropy(m, k)
F.cross_entropy(m, k, label_smoothing=0.1)
F.cross_entropy(m, k, (m[0] * 0 + 0.5).detach())
F.cross_entropy(m, k, ignore_index=1)
F.nll_loss(m, k)
""".strip().splitlines()


class Functions:
    """lazuli's functions where torch.nn.functional has them."""

    def __getattr__(self, name):
        return getattr(lazuli.nn.functional, name, None) or getattr(lazuli, name)


LIBRARIES = {torch: torch.nn.functional, lazuli: Functions()}


def rounded(array):
    """Numbers of 8 significant bits and no subnormal ones: exact in every type here."""
    bits = np.asarray(array, np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    values = bits.view(np.float32).astype(np.float64)
    return np.where(np.abs(values) < 2e-3, 0, values)


def outcome(t, program, array, dtype):
    """The value and the gradient of x in f64, where x and all in between are of the dtype."""
    dtype, wide = getattr(t, dtype), t.float64
    x = t.tensor(rounded(array)).to(dtype)
    x.requires_grad_()
    m, p = x.reshape((-1, 7)), x.reshape((1, 7, 100, 100))
    y = eval(program, {"on_torch": t is torch, "t": t, "F": LIBRARIES[t], "LONG": LONG, "x": x, "m": m, "p": p, "k": t.tensor(TARGET)})
    y.backward(t.tensor(rounded(np.linspace(1, 2, y.numel()).reshape(tuple(y.shape)))).to(y.dtype))
    return {"value": y.detach().to(wide).numpy(), "gradient": x.grad.to(wide).numpy()}


def compare(program, array, dtype):
    """Not both farther from f64 than torch is and than a few roundings."""
    eps = float(torch.finfo(getattr(torch, dtype)).eps)
    exact = outcome(torch, program, array, "float64")
    with np.errstate(all="ignore"):
        ours, theirs = outcome(lazuli, program, array, dtype), outcome(torch, program, array, dtype)
        for what, wanted in exact.items():
            scale = np.maximum(np.abs(wanted), np.abs(wanted).max() * (0.1 if what == "value" else 1)) + 1e-7
            error, allowed = (np.abs(got[what] - wanted) / scale for got in (ours, theirs))
            worst = np.nan_to_num(error, nan=np.inf).max()
            if not worst <= max(1.5 * np.nan_to_num(allowed, nan=np.inf).max(), 4 * eps):
                raise AssertionError(f"{what}: off by {worst / eps:.1f} eps, torch by {allowed.max() / eps:.1f}")


def main():
    warnings.filterwarnings("ignore", message="reduction: 'mean' divides")  # kl_div's is what ours is
    cases = {f"{program} of {name}, {dtype}": (program, array, dtype)
             for dtype in ("float16", "bfloat16") for program in PROGRAMS for name, array in ARRAYS.items()
             if not (name == "ones" and "std" in program)}  # whose slope is 0 / 0
    return report({name: lambda case=case: compare(*case) for name, case in cases.items()}, "programs")


if __name__ == "__main__":
    sys.exit(main())
