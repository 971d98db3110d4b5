#!/usr/bin/env python3
"""What a user waits for: compiling first_program.cc against the installed headers, and starting it.

    compile_time.py BUILD_DIR      run by `./lz bench compile_time`

Goals: 3 s at -O2, and 100 ms from exec to the first training step (without reading MNIST).
"""

import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent


def run(command, **kwargs):
    start = time.perf_counter()
    subprocess.run(command, check=True, **kwargs)
    return time.perf_counter() - start


def main(build):
    compiler = os.environ.get("CXX", "g++")
    with tempfile.TemporaryDirectory() as work:
        prefix, program = pathlib.Path(work) / "prefix", pathlib.Path(work) / "program"
        subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
        lib = next(prefix.glob("lib*/**/liblazuli.so")).parent
        source = HERE / "first_program.cc"
        for level in ("-O0", "-O2"):
            command = [compiler, "-std=c++20", level, "-c", source, "-I", prefix / "include", "-o", f"{program}.o"]
            seconds = [run(command) for _ in range(3)]
            print(f"  compile {level}       {statistics.median(seconds):6.2f} s")
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(f"  compiler's memory {peak:6.0f} MB")
        seconds = run([compiler, f"{program}.o", "-o", program, "-L", lib, "-llazuli", f"-Wl,-rpath,{lib}"])
        print(f"  link              {seconds:6.2f} s")
        start_only = os.environ | {"LAZULI_START_ONLY": "1"}
        seconds = [run([program], env=start_only) for _ in range(20)]
        print(f"  start             {statistics.median(seconds) * 1e3:6.1f} ms")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
