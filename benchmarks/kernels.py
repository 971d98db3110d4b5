#!/usr/bin/env python3
"""Single operations on two threads, what inference and unusual models spend their time on: PyTorch, JAX and lazuli in turns.

    kernels.py [CASE...]        run by `./lz bench kernels`; CASE is a part of a case's name

turns.py says what is measured. int64 is int32 in JAX, as it is by default.
"""

from turns import Cases, run


def where_chain(where):
    def chain(x):
        for c in (0.1, 0.2, 0.3, 0.4, 0.5):
            x = where(x > c, x * 0.5, x + c)
        return x

    return chain


def attention(softmax):
    return lambda q, k, v: softmax(q @ k.swapaxes(1, 2) * 0.125) @ v


def cases():
    table = Cases()
    add = table.add

    for m, k, n in ((1, 1024, 1024), (1, 4096, 4096), (8, 2048, 512), (64, 4096, 64), (128, 128, 128), (512, 512, 512)):
        add(f"product {m}x{k}x{n}", [(m, k), (k, n)], lambda t: lambda x, w: x @ w)
        if m <= 8:
            add(f"linear {m}x{k}x{n}", [(m, k), (n, k)], lambda t: lambda x, w: x @ w.T)
    add("gradient of 1M x 64 x 1", [(1_000_000, 64), (1_000_000, 1)], lambda t: lambda x, r: x.T @ r)
    add("one query of 16 x 1024 x 64", [(16, 1, 64), (16, 1024, 64), (16, 1024, 64)],
        lambda t: attention(lambda s: s.softmax(-1)), lambda jax: attention(jax.nn.softmax))
    for name, heads, n in (("short", 96, 128), ("1k", 8, 1024), ("2k", 8, 2048)):
        add(f"attention of {name}", [(heads, n, 64)] * 3, lambda t: attention(lambda s: s.softmax(-1)),
            lambda jax: attention(jax.nn.softmax))
    add("sum over dim 0", [(4096, 1024)], lambda t: lambda x: x.sum(0))
    add("sum over the middle", [(64, 256, 256)], lambda t: lambda x: x.sum(1))
    add("sum over dim 1", [(4096, 1024)], lambda t: lambda x: x.sum(1))
    add("var over dim 0", [(4096, 1024)], lambda t: lambda x: x.var(0), lambda j: lambda x: x.var(0, ddof=1))
    add("largest over dim 1", [(4096, 1024)], lambda t: lambda x: x.amax(1), lambda j: lambda x: x.max(1))
    add("argmax over dim 1", [(4096, 1024)], lambda t: lambda x: x.argmax(1))
    add("softmax over dim 0", [(4096, 1024)], lambda t: lambda x: x.softmax(0), lambda j: lambda x: j.nn.softmax(x, 0))
    add("softmax over dim 1", [(4096, 1024)], lambda t: lambda x: x.softmax(1), lambda j: lambda x: j.nn.softmax(x, 1))
    add("cumsum over dim 1", [(4096, 1024)], lambda t: lambda x: x.cumsum(1))
    add("top 50 of 64 x 50k", [(64, 50_000)], lambda t: lambda x: x.topk(50), lambda j: lambda x: j.lax.top_k(x, 50))
    add("sort of 1000 x 1000", [(1000, 1000)], lambda t: lambda x: x.sort(1), lambda j: lambda x: j.numpy.sort(x, 1))
    add("argsort over dim 0", [(1000, 1000)], lambda t: lambda x: x.argsort(0))
    for dtype in ("int8", "int32", "int64"):
        add(f"arithmetic of 1M {dtype}", [(1_000_000,)] * 2, lambda t: lambda a, b: (a * 3 + b) * a - b, dtype=dtype)
    add("division of 1M int32", [(1_000_000,)] * 2, lambda t: lambda a, b: a // (b * b + 1), dtype="int32")
    add("where-chain of 64k", [(65_536,)], lambda t: where_chain(t.where), lambda j: where_chain(j.numpy.where))
    add("x + 1 of 1000", [(1000,)], lambda t: lambda x: x + 1)
    return table


if __name__ == "__main__":
    run(cases())
