#!/usr/bin/env python3
"""The dtypes of results are torch's, for every pair of dtypes, ranks and numbers.

    torch_promotion_test.py FOLDER [--record]      FOLDER holds the package lazuli, as build/PRESET/python does

--record writes what torch gives to tests/python/promotion.txt, which promotion_test.py compares with where there is no torch. Where
torch refuses, lazuli may take more.
"""

import pathlib
import sys
import warnings

import torch
from cases import report

sys.path[:0] = [sys.argv[1], str(pathlib.Path(__file__).resolve().parents[1] / "python")]
import lazuli  # noqa: E402
import promotion  # noqa: E402

warnings.filterwarnings("ignore")


def compare(operation, x, y):
    if any(f"uint{bits}" in str((x, y)) for bits in (16, 32, 64)) and ("complex" in str((x, y)) or isinstance(y, complex)):
        return  # of which torch compares some, and adds none
    want = promotion.outcome(torch, operation, x, y)
    # What may not be written in place; torch has little arithmetic of wide unsigned integers.
    refuses = operation in ("add_", "div_") and not any(name in str((x, y)) for name in ("uint16", "uint32", "uint64"))
    if want != "-" or refuses:
        got = promotion.outcome(lazuli, operation, x, y)
        assert got == want, f"{got}, not {want}"


def main():
    if "--record" in sys.argv:
        promotion.TABLE.write_text("".join(line + "\n" for line in promotion.lines(torch)))
        return 0
    return report({f"{operation} {x} {y}": lambda o=operation, x=x, y=y: compare(o, x, y)
                   for _, operands in promotion.cases(promotion.OPERATIONS) for operation, x, y in operands}, "dtypes")


if __name__ == "__main__":
    sys.exit(main())
