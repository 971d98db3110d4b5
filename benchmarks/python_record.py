#!/usr/bin/env python3
"""What recording one op costs from Python, with its source site: no device is involved. Goal: 1 us.

    PYTHONPATH=build/release/python benchmarks/python_record.py

Each iteration records a result and drops the one before; the fastest of some turns is reported.
"""

import timeit

import lazuli as lz

TURNS, NUMBER = 15, 20000


class Values:
    x, y = lz.ones(8, 8), lz.ones(8, 8)
    row = lz.ones(8)
    grad = lz.tensor([[1.0] * 8] * 8, requires_grad=True)
    linear = lz.nn.Linear(8, 8)


def main():
    lz.sync(wait=True)
    names = {name: getattr(Values, name) for name in ("x", "y", "row", "grad", "linear")} | {"lz": lz}
    for statement in ("x + y", "x * 0.5", "x + row", "lz.relu(x)", "x.relu()", "x @ y", "x.sum(1, keepdim=True)",
                      "x.reshape(4, 16)", "grad * y", "linear(x)"):
        fastest = min(timeit.repeat(f"z = {statement}", globals=names, number=NUMBER, repeat=TURNS)) / NUMBER
        print(f"{statement:26} {1e9 * fastest:6.0f} ns")
        lz.sync(wait=True)


if __name__ == "__main__":
    main()
