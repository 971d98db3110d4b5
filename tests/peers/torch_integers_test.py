#!/usr/bin/env python3
"""Arithmetic of integers, of mixed dtypes, and of tensors with numbers is as torch has it: dtypes and values.

    torch_integers_test.py FOLDER [COUNT]      FOLDER holds the package lazuli, as build/PRESET/python does

Every operator with every pair of dtypes, of ranks, and of a dtype with a number are some 13,000 operations: COUNT of them, drawn
at random, or all if it is 0. Where torch refuses, lazuli may do what it likes: it takes more.
"""

import sys
import warnings

import numpy as np
import torch
from cases import report

sys.path.insert(0, sys.argv[1])
import lazuli  # noqa: E402

COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 1500
DRAWN = 3  # values of an operand beside those at its edges
INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
DTYPES = ["bool", *INTEGERS, "float16", "bfloat16", "float32", "float64"]
WIDE = ["uint16", "uint32", "uint64"]
OPERATORS = {name: eval(f"lambda x, y, t: {text}") for name, text in {
    "add": "x + y", "sub": "x - y", "mul": "x * y", "div": "x / y", "floor_divide": "x // y", "remainder": "x % y", "pow": "x ** y",
    "and": "x & y", "or": "x | y", "xor": "x ^ y", "left": "x << y", "right": "x >> y", "eq": "x == y", "ne": "x != y",
    "lt": "x < y", "le": "x <= y", "gt": "x > y", "ge": "x >= y"}.items()}
FUNCTIONS = {name: eval(f"lambda x, y, t: t.{name}(x, y)") for name in
             "fmod maximum minimum atan2 logical_and logical_or logical_xor bitwise_and floor_divide remainder pow".split()}
FUNCTIONS["where"] = lambda x, y, t: t.where(t.tensor(True), x, y)
FUNCTIONS["cat"] = lambda x, y, t: t.cat([x, y])
UNARY = "abs neg sign floor ceil round square relu logical_not bitwise_not sqrt exp reciprocal".split()
REDUCTIONS = "sum prod amax amin argmax argmin all any".split()
INPLACE = "add_ sub_ mul_ div_ floor_divide_ remainder_ fmod_ pow_ bitwise_and_ bitwise_or_ logical_and_ logical_xor_".split()
# Of integers alone those that fit the dtype: what else lazuli says of comparisons and elements is in tests/python.
NUMBERS = [True, 3, -3, 0, 300, 2**40, 2**63, 2.5, -0.5, 1e6]
ARITHMETIC = ["add", "sub", "mul", "div", "floor_divide", "remainder", "and", "or", "xor", "left", "right"]


def values(dtype, seed):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return [False, True, True, False]
    if "float" in dtype:
        return [0.0, -1.5, 7.0, 0.3, *rng.uniform(-9, 9, DRAWN).tolist()]
    info = np.iinfo(dtype)
    edges = [info.min, info.max, 0, 1, info.max - 1, min(127, info.max), 3, 2, max(info.min, -7), max(info.min, -1)]
    return edges + rng.integers(info.min, info.max, DRAWN, dtype=dtype, endpoint=True).tolist()


def both(dtype, other, rank_x, rank_y, seed=0, division=False):
    """The operands in both libraries, equal in length, or of rank 0."""
    x, y = values(dtype, seed), values(other, seed + 1)
    n = len(x) * len(y)
    x, y = [v for v in x for _ in y][:n], (y * len(x))[:n]
    if division and not ("float" in dtype or "float" in other):
        y = [v if v else 1 for v in y]
    x, y = x if rank_x else x[-1], y if rank_y else y[-1]
    make = {torch: lambda v, d: torch.tensor(v, dtype=getattr(torch, d)), lazuli: lambda v, d: lazuli.tensor(array(v, d), dtype=getattr(lazuli, d))}
    return {t: (make[t](x, dtype), make[t](y, other)) for t in make}


def array(value, dtype):
    return np.array(value, dtype="float64" if "float" in dtype else dtype)


def as_array(t):
    if str(t.dtype).endswith("bfloat16"):
        t = t.to(torch.float32 if isinstance(t, torch.Tensor) else lazuli.float32)
    return t.detach().numpy()


class Refused(Exception):
    """By torch."""


def compare(function, operands, only_dtype):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = function(*operands[torch], torch)
    except (RuntimeError, NotImplementedError, TypeError, OverflowError) as error:
        raise Refused(str(error)) from None
    got = function(*operands[lazuli], lazuli)
    assert repr(got.dtype).split(".")[-1] == str(want.dtype).split(".")[-1], f"{got.dtype!r}, not {want.dtype}"
    if only_dtype:
        return
    narrow = str(want.dtype) in ("torch.float16", "torch.bfloat16")
    exact = not want.dtype.is_floating_point
    rtol = 0 if exact else 1e-2 if narrow else 2e-6
    # Of 16 bits, numbers near 9 cancel. torch rounds an operand of rank 0 and more bits if it is the first.
    atol = 4 * torch.finfo(want.dtype).eps if narrow else 0
    np.testing.assert_allclose(as_array(got), as_array(want), rtol=rtol, atol=atol, equal_nan=True)


refused = []


def case(name, function, operands, only_dtype=False):
    def check():
        try:
            compare(function, operands(), only_dtype)
        except Refused:
            refused.append(name)

    return name, check


def cases():
    for name, function in {**OPERATORS, **FUNCTIONS}.items():
        division = name in ("floor_divide", "remainder", "fmod")
        for a in DTYPES:
            for b in DTYPES:
                if name in ("sub", "pow", "floor_divide", "remainder") and "float" in (a + b) and "16" in (a if "float" in a else b):
                    continue  # cancels, or steps over a whole number, in 16 bits
                for rank_x, rank_y in ((1, 1), (1, 0), (0, 1), (0, 0)):
                    # Beside f16 torch rounds what has rank 0 to f32 alone, so that 0 * 1e6 is 0.
                    only_dtype = "float16" in (a, b) and rank_x != rank_y
                    yield case(f"{name} {a}[{rank_x}] {b}[{rank_y}]", function,
                               lambda a=a, b=b, p=rank_x, q=rank_y, d=division: both(a, b, p, q, 0, d), only_dtype)
        for a in WIDE:
            yield case(f"{name} {a}", function, lambda a=a, d=division: both(a, a, 1, 1, 0, d))
    for name in ARITHMETIC:
        for a in DTYPES:
            for number in NUMBERS:
                for rank in (0, 1):
                    yield case(f"{name} {a}[{rank}] {number}", lambda x, y, t, f=OPERATORS[name], n=number: f(x, n, t),
                               lambda a=a, r=rank: both(a, a, r, r))
                    yield case(f"{name} {number} {a}[{rank}]", lambda x, y, t, f=OPERATORS[name], n=number: f(n, y, t),
                               lambda a=a, r=rank: both(a, a, r, r, 0, True))
    for name in UNARY:
        for a in DTYPES:
            yield case(f"{name} {a}", lambda x, y, t, n=name: getattr(t, n)(x), lambda a=a: both(a, a, 1, 1))
    for name in REDUCTIONS:
        for a in [*INTEGERS, "bool"]:
            yield case(f"{name} {a}", lambda x, y, t, n=name: getattr(x, n)(), lambda a=a: both(a, a, 1, 1))
    for name in INPLACE:
        for a in DTYPES:
            for b in DTYPES:
                if "float" in a + b:
                    continue
                yield case(f"{name} {a} {b}", lambda x, y, t, n=name: getattr(x.clone(), n)(y),
                           lambda a=a, b=b, d="div" in name or "mod" in name or "rem" in name: both(a, b, 1, 1, 0, d))
    for a in INTEGERS:
        for exponent in (0, 1, 2, 3, 7, 39, 40, 63):
            yield case(f"{a} ** {exponent}", lambda x, y, t, e=exponent: x**e, lambda a=a: both(a, a, 1, 1))


def main():
    operations = dict(cases())
    names = sorted(operations)
    if COUNT:
        names = np.random.default_rng(0).choice(names, min(COUNT, len(names)), replace=False)
    status = report({name: operations[name] for name in names}, "operations")
    print(f"torch refuses {len(refused)} of them")
    return status


if __name__ == "__main__":
    sys.exit(main())
