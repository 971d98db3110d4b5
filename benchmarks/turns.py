"""A table of operations that PyTorch, JAX and lazuli run in turns, on two threads: kernels.py, maths.py.

Each library is a process of its own, which measures one case at a time while the others wait. Reported is the best time of all
turns in ms, a call with the wait for its result, and lazuli's part of the better peer's time.
"""

import json
import math
import subprocess
import sys
import time

THREADS, TURNS, SECONDS = 2, 5, 0.25


class Cases(dict):
    """Name: (shapes of the arrays, their dtype, {library: a function of the library that gives the function of the arrays}).

    None in place of a function: the library lacks it.
    """

    def add(self, name, shapes, torch, jax=..., dtype="float32"):
        """Adds a case whose function is the same for torch and lazuli, and for JAX unless another one or None is given."""
        self[name] = (shapes, dtype, {"torch": torch, "jax": torch if jax is ... else jax, "lazuli": torch})


def functions(cases, library, names):
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
    for name, (shapes, dtype, by_library) in cases.items():
        values = [(random.standard_normal(shape) * (100 if "int" in dtype else 1)).astype(dtype) for shape in shapes]
        if name in names and by_library[library] is not None:
            calls[name] = prepare(by_library[library](of), [make(v) for v in values])
    return calls


def measure(call):
    best, start = math.inf, time.perf_counter()
    while time.perf_counter() - start < SECONDS:
        began = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - began)
    return 1e3 * best


def worker(cases, library, names):
    calls = functions(cases, library, names)
    for name in calls:
        for _ in range(6):
            calls[name]()
    print("ready", flush=True)
    for line in sys.stdin:
        call = calls.get(line.strip())
        print(math.inf if call is None else measure(call), flush=True)


def run(cases):
    """Measures the cases whose names contain an argument of the command line, all without one."""
    if sys.argv[1:2] == ["--worker"]:
        worker(cases, sys.argv[2], set(json.loads(sys.argv[3])))
        return
    wanted = sys.argv[1:]
    names = [name for name in cases if not wanted or any(part in name for part in wanted)]
    libraries = ("torch", "jax", "lazuli")
    workers = {
        library: subprocess.Popen([sys.executable, sys.argv[0], "--worker", library, json.dumps(names)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        for library in libraries
    }
    for library, process in workers.items():
        if process.stdout.readline().strip() != "ready":
            sys.exit(f"{sys.argv[0]}: the process of {library} ended")

    def turn(name, library):
        process = workers[library]
        process.stdin.write(name + "\n")
        process.stdin.flush()
        return float(process.stdout.readline())

    table(names, libraries, turn)


def table(names, libraries, turn, turns=TURNS):
    """Prints the best of the turns, turn(name, library) in ms, of each case, and lazuli's part of the best peer's."""
    print(f"{'case':34s}" + "".join(f"{library:>10s}" for library in libraries) + f"{'part':>8s}")
    parts = []
    for name in names:
        best = dict.fromkeys(libraries, math.inf)
        for _ in range(turns):
            for library in libraries:
                best[library] = min(best[library], turn(name, library))
        parts.append(best["lazuli"] / min(best[library] for library in libraries if library != "lazuli"))
        print(f"{name:34s}" + "".join(f"{best[library]:10.3f}" for library in libraries) + f"{parts[-1]:8.2f}", flush=True)
    print(f"geometric mean of {len(parts)}: {math.exp(sum(map(math.log, parts)) / len(parts)):.2f}")
