#!/usr/bin/env python3
"""How long graphs of several shapes take to compile, by size: from recording to dispatch, in a process each.

    graph_size.py [SHAPE...] [--sizes 100,1000,...]      run by `./lz bench graph_size`

Goal: the time a node stays the same from 10^2 to 10^5 recorded nodes, and 10^5 nodes compile in 60 s.
"""

import argparse
import os
import resource
import subprocess
import sys
import time

SIZES = (100, 1_000, 10_000, 100_000)


def chain(lz, nodes):
    """One elementwise op after the other, on arrays."""
    x, y = lz.ones(64), lz.full([64], 0.5)
    ops = (lambda a: a * y, lambda a: a + y, lz.tanh, lambda a: a - y, lz.exp, lambda a: lz.maximum(a, y), lz.sigmoid, lz.abs)
    for k in range(nodes):
        x = ops[k % len(ops)](x)
    return x


def numbers(lz, nodes):
    """The same with numbers, each of them a parameter of the program."""
    x = lz.ones(64)
    for k in range(nodes):
        x = x * 0.5 if k % 2 else x + 1.5
    return x


def apart(lz, nodes):
    """Ops that have nothing to do with each other; all results are kept."""
    x = [lz.ones(8, k % 7 + 1) for k in range(7)]
    lz.sync()
    return [lz.exp(x[k % 7]) if k % 3 else x[k % 7] * k for k in range(nodes)]


def fan(lz, nodes):
    """One array read by many, and their sum, pair by pair."""
    x, w = lz.ones(32, 8), lz.ones(8, 8)
    values = [lz.tanh(x + k) if k % 4 else x.matmul(w * k) for k in range(nodes // 4)]
    while len(values) > 1:
        values = [values[k] + values[k + 1] for k in range(0, len(values) - 1, 2)] + values[len(values) & ~1:]
    return values[0]


def reductions(lz, nodes):
    """Sums and maxima of one array, and of what is made of it, added up one after the other."""
    x = lz.ones(16, 32)
    total = lz.zeros(16)
    for k in range(nodes // 4):
        y = x * total.unsqueeze(1) if k % 2 else x
        total = total + (y.sum(1) if k % 3 else y.amax(1))
    return total


def mlp(lz, nodes):
    """Training steps of a small network, one after the other."""
    lz.manual_seed(0)
    net = lz.nn.Sequential(lz.nn.Linear(16, 32), lz.nn.ReLU(), lz.nn.Linear(32, 4))
    x, y = lz.randn(8, 16), lz.zeros(8, dtype=lz.int64)
    lz.sync()
    start = lz.metrics.counter("graph.nodes_recorded")
    while lz.metrics.counter("graph.nodes_recorded") - start < nodes:
        loss = lz.nn.functional.cross_entropy(net(x), y)
        for p in net.parameters():
            p.grad = None
        loss.backward()
        with lz.no_grad():
            for p in net.parameters():
                p.sub_(p.grad * 0.01)
    return loss, list(net.parameters())


SHAPES = {f.__name__: f for f in (chain, numbers, apart, fan, reductions, mlp)}


def one(shape, nodes):
    import lazuli as lz

    lz.ones(1).numpy()
    before = lz.metrics.counter("graph.nodes_recorded")
    kept = SHAPES[shape](lz, nodes)
    recorded = lz.metrics.counter("graph.nodes_recorded") - before
    kernels = lz.metrics.counter("cpu.kernels_compiled")
    start = time.perf_counter()
    lz.sync()
    seconds = time.perf_counter() - start
    lz.sync(True)
    kernels = lz.metrics.counter("cpu.kernels_compiled") - kernels
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(recorded, seconds, kernels, megabytes)
    del kept


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", help=", ".join(SHAPES))
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    sizes = [int(size) for size in args.sizes.split(",")]
    if args.one:
        one(args.shapes[0], sizes[0])
        return
    environment = os.environ | {"LAZULI_MAX_GRAPH_NODES": str(10**9)}
    print(f"  {'graph':12} {'nodes':>8} {'s':>9} {'us a node':>10} {'kernels':>8} {'MB':>6}")
    for shape in args.shapes or SHAPES:
        for size in sizes:
            command = [sys.executable, __file__, "--one", shape, "--sizes", str(size)]
            out = subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, text=True).stdout
            recorded, seconds, kernels, megabytes = out.split()
            each = float(seconds) / int(recorded) * 1e6
            print(f"  {shape:12} {recorded:>8} {float(seconds):9.3f} {each:10.1f} {kernels:>8} {float(megabytes):6.0f}", flush=True)


if __name__ == "__main__":
    main()
