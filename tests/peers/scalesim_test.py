#!/usr/bin/env python3
"""npu-layers counts what SCALE-Sim 3.0.0 counts, to the last digit: random layers, arrays and buffers.

usage: scalesim_test.py NPU_LAYERS [--seed=N] [--count=N]

LAZULI_SCALESIM_PYTHON names a Python with scalesim==3.0.0 and numpy==1.26.4 (newer ones break it); ./lz test --peers makes one.
This file is also what runs there: with a case on each line of standard input, it prints SCALE-Sim's reports of each.
"""
import argparse
import contextlib
import csv
import io
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

CONFIG = """[general]
run_name = run
[architecture_presets]
ArrayHeight : {rows}
ArrayWidth : {cols}
IfmapSramSzkB: {ifmap_kb}
FilterSramSzkB: {filter_kb}
OfmapSramSzkB: {ofmap_kb}
IfmapOffset: 0
FilterOffset: 10000000
OfmapOffset: 20000000
Dataflow : {dataflow}
Bandwidth : 10
ReadRequestBuffer: 32
WriteRequestBuffer: 32
[layout]
IfmapCustomLayout: False
FilterCustomLayout: False
IfmapSRAMBankBandwidth: 10
IfmapSRAMBankNum: 10
IfmapSRAMBankPort: 2
FilterSRAMBankBandwidth: 10
FilterSRAMBankNum: 10
FilterSRAMBankPort: 2
[sparsity]
SparsitySupport : false
SparseRep : ellpack_block
OptimizedMapping : false
BlockSize : 8
RandomNumberGeneratorSeed : 40
[run_presets]
InterfaceBandwidth: CALC
UseRamulatorTrace: False
"""
# Of its two reports, behind the number of the layer.
COMPUTE = ["cycles_incl_prefetch", "cycles", "stall", "overall_util", "map_eff", "comp_util"]
ACCESSES = {"sram_i": 3, "sram_f": 6, "sram_o": 9, "dram_i": 12, "dram_f": 15, "dram_o": 18}


def scalesim(case):
    """SCALE-Sim's numbers of each layer of a case, as it prints them."""
    from scalesim.scale_sim import scalesim as Simulator

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "run.cfg").write_text(CONFIG.format(**case), encoding="utf-8")
        (folder / "layers.csv").write_text(case["topology"], encoding="utf-8")
        (folder / "layout.csv").write_text("", encoding="utf-8")
        with contextlib.redirect_stdout(io.StringIO()):
            Simulator(save_disk_space=True, verbose=False, config=str(folder / "run.cfg"),
                      topology=str(folder / "layers.csv"), layout=str(folder / "layout.csv"),
                      input_type_gemm=case["gemm"]).run_scale(top_path=str(folder / "out"))

        def rows(report):
            lines = (folder / "out" / "run" / report).read_text(encoding="utf-8").splitlines()[1:]
            return [[field.strip() for field in line.split(",")] for line in lines]

        return [{**dict(zip(COMPUTE, compute[1:])), **{name: access[at] for name, at in ACCESSES.items()}}
                for compute, access in zip(rows("COMPUTE_REPORT.csv"), rows("DETAILED_ACCESS_REPORT.csv"))]


def random_case(draw):
    sides = [1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 24, 32, 33, 48, 64]
    case = {"rows": draw.choice(sides), "cols": draw.choice(sides), "dataflow": draw.choice(["os", "ws", "is"]),
            "gemm": draw.random() < 0.5}
    for buffer in ("ifmap_kb", "filter_kb", "ofmap_kb"):
        case[buffer] = draw.choice([1, 1, 2, 3, 8, 64])
    lines = ["heading"]
    for number in range(draw.randint(1, 3)):
        if case["gemm"]:
            lines.append("g{},{},{},{},".format(number, *(draw.choice([1, 2, draw.randint(1, 20), draw.randint(1, 100)])
                                                         for _ in range(3))))
            continue
        image = draw.randint(1, 16), draw.randint(1, 16)
        kernel = draw.randint(1, min(image[0], 5)), draw.randint(1, min(image[1], 5))
        name = "DP" if draw.random() < 0.1 else "c"  # DP: a layer for each channel
        lines.append(f"{name}{number},{image[0]},{image[1]},{kernel[0]},{kernel[1]},{draw.randint(1, 8)},"
                     f"{draw.randint(1, 20)},{draw.randint(1, 5)},")
    case["topology"] = "\n".join(lines) + "\n"
    return case


def ours(layers, case):
    keys = [f"mxu.{key}={case[key]}" for key in ("rows", "cols", "dataflow")]
    keys += [f"compat.{key}={case[key]}" for key in ("ifmap_kb", "filter_kb", "ofmap_kb")]
    printed = subprocess.run([layers, "--topology=-", f"--set=compat.scalesim=true,{','.join(keys)}"],
                             input=case["topology"], capture_output=True, text=True, check=True).stdout
    return list(csv.DictReader(io.StringIO(printed)))


def main():
    if len(sys.argv) == 1:  # in SCALE-Sim's Python
        for line in sys.stdin:
            print(json.dumps(scalesim(json.loads(line))), flush=True)
        return 0
    parser = argparse.ArgumentParser()
    parser.add_argument("layers")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    options = parser.parse_args()
    python = os.environ.get("LAZULI_SCALESIM_PYTHON")
    if not python:
        print("skipped: LAZULI_SCALESIM_PYTHON names no Python with scalesim; ./lz test --peers makes one")
        return 77
    draw = random.Random(options.seed)
    cases = [random_case(draw) for _ in range(options.count)]
    theirs = subprocess.run([python, __file__], input="\n".join(map(json.dumps, cases)) + "\n", capture_output=True,
                            text=True, check=True).stdout.splitlines()
    layers = wrong = 0
    for case, line in zip(cases, theirs, strict=True):
        for mine, its in zip(ours(options.layers, case), json.loads(line), strict=True):
            layers += 1
            different = {name: (mine[name], value) for name, value in its.items() if float(mine[name]) != float(value)}
            if different:
                wrong += 1
                print(f"{mine['layer']} of {case}: ours, SCALE-Sim's: {different}")
    print(f"{layers - wrong} of {layers} layers are as SCALE-Sim has them")
    return 1 if wrong or not layers else 0


if __name__ == "__main__":
    sys.exit(main())
