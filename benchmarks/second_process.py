#!/usr/bin/env python3
"""How soon a process trains LeNet when an earlier one left its kernels in XLA_PERSISTENT_CACHE_PATH.

    second_process.py PROGRAM      PROGRAM is build/release/benchmarks/first_step; run by `./lz bench second_process`

Goal: nothing is compiled, and the first step is done within 1.5 times a warm step plus 150 ms.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

RUNS = 9


def run(program, folder):
    """What the program prints."""
    environment = os.environ | {"XLA_PERSISTENT_CACHE_PATH": folder}
    out = subprocess.run([program], env=environment, check=True, text=True, stdout=subprocess.PIPE).stdout.split()
    return *map(float, out[:3]), int(out[3])


def load_time(program):
    """Milliseconds that the system takes to load the program and its libraries."""
    environment = os.environ | {"LD_TRACE_LOADED_OBJECTS": "1"}
    start = time.perf_counter()
    subprocess.run([program], env=environment, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - start) * 1e3


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        print("LeNet, batch 64      first step   second   a warm one   kernels compiled")
        for name, runs in (("first process", 1), ("second process", RUNS)):
            rows = [run(program, folder) for _ in range(runs)]
            first, second, warm, compiled = map(statistics.median, zip(*rows))
            print(f"  {name:16} {first:9.1f} ms {second:6.1f} ms {warm:8.1f} ms {compiled:12.0f}")
        print(f"  goal             {1.5 * warm + 150:9.1f} ms; loading the program takes another "
              f"{load_time(program):.1f} ms")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
