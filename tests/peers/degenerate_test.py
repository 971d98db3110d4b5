"""Every opcode over arrays of rank 0, of no elements and of one gives on lazuli what it gives on jaxlib.

usage: degenerate_test.py DEGENERATE_HLO LAZULI_RUN [PATTERN...]

The modules are those of tests/backend/clients/degenerate_uses.h. What jaxlib refuses is counted, not compared; of each opcode
and type every STRIDE-th module runs (LAZULI_SWEEP=all: each). Random bits are left out, factors of matrices that are
not definite, and reductions of one element each, also in windows: jaxlib returns the element, as an initial value other than the
identity may count or not (StableHLO leaves open how often it does); here it counts once.
"""
import collections
import fnmatch
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from hlo_oracle import Oracle  # noqa: E402

STRIDE = 1 if os.environ.get("LAZULI_SWEEP") == "all" else 7
TYPES = {"f32": np.float32, "s32": np.int32, "pred": np.bool_, "c64": np.complex64, "u32": np.uint32, "u64": np.uint64}
# Sums of products, and functions that XLA approximates otherwise.
TOLERANCE = 1e-4


def inputs(text):
    """Values for the entry's parameters, or None for a type that is not made here."""
    rng = np.random.default_rng(len(text))
    found = {}
    for shape, number in re.findall(r"= (\S+) parameter\((\d+)\)", text[text.index("ENTRY"):]):
        match = re.fullmatch(r"(\w+)\[([\d,]*)\](\{.*\})?", shape)
        if not match or match[1] not in TYPES:
            return None
        dtype, dims = np.dtype(TYPES[match[1]]), [int(d) for d in match[2].split(",") if d]
        value = rng.uniform(0.5, 2.5, dims)  # where functions are defined
        if dtype.kind == "i":  # no ties, of which a selection may take either
            value = rng.permutation(value.size).reshape(dims)
        found[int(number)] = np.asarray(value + 1j * value[::-1] if dtype.kind == "c" and dims else value).astype(dtype)
    return [found[i] for i in range(len(found))]


def elements(dims):
    return int(np.prod([int(d) for d in dims.split(",") if d]))


def is_left_out(opcode, text):
    """Whether the sides need not agree."""
    if opcode == "reduce-window":
        size = re.search(r"window={(?:size=([\dx]+))?", text)[1]
        return elements((size or "").replace("x", ",")) == 1
    if opcode != "reduce":
        return opcode in ("rng-bit-generator", "cholesky")
    result, operand = re.search(r"ROOT \S+ = \(?\w+\[([\d,]*)\].* reduce\((\S+?)[,)]", text[text.index("ENTRY"):]).groups()
    dims = re.search(re.escape(operand) + r" = \w+\[([\d,]*)\]", text)[1]
    return elements(result) == elements(dims)


def lazuli(tool, device, files, folder):
    """stem -> the outputs, or the error."""
    results, rest = {}, list(files)
    while rest:
        command = [tool, *rest[:200], f"--device={device}", f"--inputs={folder}", f"--output-dir={folder / device}",
                   "--report=json"]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        entries = [json.loads(line) for line in ran.stdout.splitlines()]
        for entry in entries:
            stem = pathlib.Path(entry["file"]).stem
            if entry["status"] != "ok":
                results[stem] = entry["error"]
                continue
            with np.load(folder / device / f"{stem}.npz") as arrays:
                results[stem] = [arrays[f"o{i}"] for i in range(len(arrays.files) - 1)]
        if len(entries) < min(200, len(rest)):  # a crash costs the file it happened in, no other
            results[rest[len(entries)].stem] = f"exit status {ran.returncode}"
            entries.append(None)
        rest = rest[len(entries):]
    return results


def bits(x):
    """As lazuli-run writes it: a type that numpy lacks is the bits of the unsigned type of its width."""
    return x if x.dtype.type.__module__ == "numpy" else x.view(f"u{x.itemsize}")


def difference(expected, actual):
    """None, or how the outputs differ."""
    if not isinstance(actual, list):
        return actual
    if len(expected) != len(actual):
        return f"{len(actual)} outputs, expected {len(expected)}"
    for x, y in zip(map(bits, expected), actual):
        if x.shape != y.shape or x.dtype != y.dtype:
            return f"is {y.dtype}{y.shape}, expected {x.dtype}{x.shape}"
        if not np.allclose(x, y, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
            return f"is {y.tolist()}, expected {x.tolist()}"
    return None


def main():
    generator, tool, patterns = sys.argv[1], sys.argv[2], sys.argv[3:]
    refused, failures, oracle = collections.Counter(), 0, Oracle()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        subprocess.run([generator, folder], check=True)
        expected, files = {}, []
        for path in sorted(folder.glob("*.hlo")):
            opcode, _, number = path.stem.rsplit(".", 2)
            if patterns and not any(fnmatch.fnmatch(path.stem, p) for p in patterns):
                continue
            text = path.read_text()
            values = inputs(text) if int(number) % STRIDE == 0 else None
            if values is None or is_left_out(opcode, text):
                continue
            try:
                expected[path.stem] = oracle.run(text, values)
            except RuntimeError:
                refused[opcode] += 1
                continue
            np.savez(folder / f"{path.stem}.in.npz", **{f"p{i}": v for i, v in enumerate(values)})
            files.append(path)
        for device in ("interpreter", "cpu"):
            results = lazuli(tool, device, files, folder)
            for stem, value in expected.items():
                complaint = difference(value, results.get(stem, "no result"))
                if complaint:
                    failures += 1
                    root = re.search(r"ROOT (.*)", (folder / f"{stem}.hlo").read_text())[1]
                    print(f"{device}: {stem}: {complaint[:200]}: {root[:240]}")
    oracle.close()
    print("jaxlib refused", ", ".join(f"{n} {opcode}" for opcode, n in sorted(refused.items())) or "none")
    print(f"{len(expected)} modules on 2 devices, {failures} failures")
    sys.exit(failures > 0 or not expected)


if __name__ == "__main__":
    main()
