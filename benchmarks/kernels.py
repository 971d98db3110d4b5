#!/usr/bin/env python3
"""Single operations on two threads, what inference and unusual models spend their time on: PyTorch, JAX and lazuli in turns.

    kernels.py [CASE...]        run by `./lz bench kernels`; CASE is a part of a case's name

Each library is a process of its own, which measures one case at a time while the others wait. Reported is the best time of all
turns in ms, a call with the wait for its result, and lazuli's part of the better peer's time. int64 is int32 in JAX, as it is by
default.
"""

import json
import math
import subprocess
import sys
import time

THREADS, TURNS, SECONDS = 2, 5, 0.25


def where_chain(where):
    def chain(x):
        for c in (0.1, 0.2, 0.3, 0.4, 0.5):
            x = where(x > c, x * 0.5, x + c)
        return x

    return chain


def attention(softmax):
    return lambda q, k, v: softmax(q @ k.swapaxes(1, 2) * 0.125) @ v


def cases():
    """Name: (shapes of the arrays, their dtype, {library: function of them})."""
    table = {}

    def add(name, shapes, torch, jax=None, lazuli=None, dtype="float32"):
        table[name] = (shapes, dtype, {"torch": torch, "jax": jax or torch, "lazuli": lazuli or torch})

    for m, k, n in ((1, 1024, 1024), (1, 4096, 4096), (8, 2048, 512), (64, 4096, 64), (128, 128, 128), (512, 512, 512)):
        add(f"product {m}x{k}x{n}", [(m, k), (k, n)], lambda t: lambda x, w: x @ w)
        if m <= 8:
            add(f"linear {m}x{k}x{n}", [(m, k), (n, k)], lambda t: lambda x, w: x @ w.T)
    add("gradient of 1M x 64 x 1", [(1_000_000, 64), (1_000_000, 1)], lambda t: lambda x, r: x.T @ r)
    add("one query of 16 x 1024 x 64", [(16, 1, 64), (16, 1024, 64), (16, 1024, 64)],
        lambda t: attention(lambda s: s.softmax(-1)), lambda jax: attention(jax.nn.softmax))
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


def functions(library, names):
    """Name: a call of the case that waits for its result."""
    import numpy as np

    if library == "torch":
        import torch as of

        of.set_num_threads(THREADS)
        make, prepare = of.from_numpy, lambda f, arrays: lambda: f(*arrays)
    elif library == "jax":
        import jax as of

        make = of.numpy.asarray

        def prepare(f, arrays):
            jitted = of.jit(f)
            return lambda: of.block_until_ready(jitted(*arrays))
    else:
        import lazuli as of

        make = of.tensor

        def prepare(f, arrays):
            def call():
                result = f(*arrays)
                of.sync(wait=True)
                return result

            return call

    random = np.random.default_rng(0)
    calls = {}
    for name, (shapes, dtype, by_library) in cases().items():
        values = [(random.standard_normal(shape) * (100 if "int" in dtype else 1)).astype(dtype) for shape in shapes]
        if name in names:
            calls[name] = prepare(by_library[library](of), [make(v) for v in values])
    return calls


def measure(call):
    best, start = math.inf, time.perf_counter()
    while time.perf_counter() - start < SECONDS:
        began = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - began)
    return 1e3 * best


def worker(library, names):
    calls = functions(library, names)
    for name in calls:
        for _ in range(6):
            calls[name]()
    print("ready", flush=True)
    for line in sys.stdin:
        print(measure(calls[line.strip()]), flush=True)


def main():
    wanted = sys.argv[1:]
    names = [name for name in cases() if not wanted or any(part in name for part in wanted)]
    libraries = ("torch", "jax", "lazuli")
    workers = {
        library: subprocess.Popen([sys.executable, __file__, "--worker", library, json.dumps(names)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        for library in libraries
    }
    for process in workers.values():
        if process.stdout.readline().strip() != "ready":
            sys.exit("kernels.py: a library's process ended")
    print(f"{'case':30s}" + "".join(f"{library:>10s}" for library in libraries) + f"{'part':>8s}")
    parts = []
    for name in names:
        best = dict.fromkeys(libraries, math.inf)
        for _ in range(TURNS):
            for library, process in workers.items():
                process.stdin.write(name + "\n")
                process.stdin.flush()
                best[library] = min(best[library], float(process.stdout.readline()))
        parts.append(best["lazuli"] / min(best["torch"], best["jax"]))
        print(f"{name:30s}" + "".join(f"{best[library]:10.3f}" for library in libraries) + f"{parts[-1]:8.2f}", flush=True)
    print(f"geometric mean of {len(parts)}: {math.exp(sum(map(math.log, parts)) / len(parts)):.2f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(sys.argv[2], set(json.loads(sys.argv[3])))
    else:
        main()
