#!/usr/bin/env python3
"""At zeros, ties, infinities, NaN and subnormals every function and its gradients are what torch's are.

    torch_special_values_test.py FOLDER [--record] [--dtype=NAME...] [PATTERN...]

FOLDER holds the package lazuli, as build/PRESET/python does. PATTERN: only the expressions that match. --record writes what torch
gives to tests/python/special_values.npz, which special_values_test.py compares with where there is no torch.
"""

import fnmatch
import pathlib
import sys
import warnings

import numpy as np
import torch
import torch.nn.functional as F
from cases import report

OPTIONS = [a for a in sys.argv[1:] if a.startswith("--")]
FOLDER, *PATTERNS = [a for a in sys.argv[1:] if not a.startswith("--")]
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [FOLDER, str(HERE.parent / "python")]
import special_values  # noqa: E402

import lazuli  # noqa: E402

warnings.filterwarnings("ignore")  # of torch: variances of one element, targets that broadcast


class Torch:
    """The functions that torch calls otherwise, or gives other parameters."""

    log_sigmoid = staticmethod(F.logsigmoid)
    dropout = staticmethod(F.dropout)
    hardtanh = staticmethod(F.hardtanh)
    norm = staticmethod(lambda x, p=2, dim=None, keepdim=False: torch.linalg.vector_norm(x, p, dim=dim, keepdim=keepdim))
    logsumexp = staticmethod(lambda x, dims=None, keepdim=False:
                             torch.logsumexp(x, tuple(range(x.ndim)) if dims is None else dims, keepdim))
    sort = staticmethod(lambda x, dim, descending=False: torch.sort(x, dim=dim, descending=descending, stable=True))
    argsort = staticmethod(lambda x, dim, descending=False: torch.argsort(x, dim=dim, descending=descending, stable=True))
    smooth_l1_loss = staticmethod(lambda x, y, beta=1.0, **options: F.smooth_l1_loss(x, y, beta=beta, **options))
    huber_loss = staticmethod(lambda x, y, delta=1.0, **options: F.huber_loss(x, y, delta=delta, **options))
    kl_div = staticmethod(F.kl_div)
    embedding = staticmethod(F.embedding)
    binary_cross_entropy_with_logits = staticmethod(F.binary_cross_entropy_with_logits)
    batch_norm = staticmethod(lambda x, mean=None, var=None, **options: F.batch_norm(x, mean, var, **options))


IN_TORCH = special_values.find_function(Torch, torch, F)
IN_LAZULI = special_values.find_function(lazuli.nn.functional, lazuli)


def strided(x):
    """A tensor whose elements are not neighbours: torch then takes loops over single elements, which see NaN otherwise."""
    return torch.tensor(np.stack([x, x], -1))[..., 0].detach()


def of_torch(row, dtype):
    """What torch's two kinds of loops give."""
    answers = [special_values.outcome(torch, IN_TORCH, row, dtype, make) for make in (torch.tensor, strided)]
    same = all(np.array_equal(x, y, equal_nan=True) for x, y in zip(*(a.values() for a in answers), strict=True) if x is not None)
    return answers[:1] if same else answers


def compare(row, dtype):
    try:
        answers = of_torch(row, dtype)
    except (RuntimeError, NotImplementedError) as refusal:
        print(f"not compared, torch takes no {dtype}: {row[1]}: {str(refusal).splitlines()[0]}")
        return
    if row[1] in special_values.REFUSED_OF_INTEGERS and not special_values.is_inexact(dtype):
        return
    got = special_values.outcome(lazuli, IN_LAZULI, row, dtype, lazuli.tensor)
    lines = list(special_values.differences(row, dtype, got, answers))
    assert not lines, "\n    ".join(["", *lines])


def main():
    rows = [row for row in special_values.ROWS if not PATTERNS or any(fnmatch.fnmatch(row[1], p) for p in PATTERNS)]
    if "--record" in OPTIONS:
        special_values.record({row: of_torch(row, "float32") for row in rows})
        return 0
    dtypes = [o.removeprefix("--dtype=") for o in OPTIONS if o.startswith("--dtype=")] or special_values.DTYPES
    cases = {"every function has a row": lambda: special_values.check_complete(lazuli)}
    cases |= {f"{expression} of {kind}, {dtype}": lambda row=(kind, expression), dtype=dtype: compare(row, dtype)
              for kind, expression in rows for dtype in dtypes}
    return report(cases, "functions")


if __name__ == "__main__":
    sys.exit(main())
