"""JAX's programs, lowered to HLO here, give on lazuli what they give on jaxlib.

usage: jax_differential_test.py LAZULI_RUN [--programs=MODULE] [--x64] [--keep=FOLDER] [NAME...]

MODULE is jax_programs (the default) or jax_sweeps; names are patterns, without which all its programs run.
"""
import fnmatch
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

X64 = "--x64" in sys.argv
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_ENABLE_X64"] = "1" if X64 else "0"
warnings.filterwarnings("ignore")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

PROGRAMS = importlib.import_module(
    next((a.removeprefix("--programs=") for a in sys.argv if a.startswith("--programs=")), "jax_programs")).PROGRAMS

# What a type's results may differ by, relative to the largest element of the array and to each element.
TOLERANCE = {"float16": 4e-3, "bfloat16": 2e-2, "float32": 2e-4, "float64": 1e-9, "complex64": 2e-4, "complex128": 1e-9}
# Programs that compute in f32 whatever their arguments are.
IN_F32 = {"nn.attention"}


def bits(x):
    """As lazuli-run writes it: a type that numpy lacks is the bits of the unsigned type of its width."""
    x = np.asarray(x)
    return x if x.dtype.type.__module__ == "numpy" else x.view(f"u{x.itemsize}")


def dump(name, folder):
    """Writes NAME.hlo, NAME.in.npz and returns the expected outputs with their paths in the result."""
    function, arguments = PROGRAMS[name]
    if X64:
        wide = {"float32": np.float64, "complex64": np.complex128, "int32": np.int64}
        arguments = jax.tree.map(lambda a: a.astype(wide.get(a.dtype.name, a.dtype)), arguments)
    jitted = jax.jit(function, keep_unused=True)
    text = jitted.lower(*arguments).compiler_ir("hlo").as_hlo_text(print_large_constants=True)
    (folder / f"{name}.hlo").write_text(text)
    leaves = jax.tree.leaves(arguments)
    np.savez(folder / f"{name}.in.npz", **{f"p{i}": bits(x) for i, x in enumerate(leaves)})
    results = (function if getattr(function, "eager", False) else jitted)(*jax.tree.map(jnp.asarray, arguments))
    return [(jax.tree_util.keystr(path), np.asarray(x)) for path, x in jax.tree_util.tree_leaves_with_path(results)]


def difference(name, expected, actual):
    """None, or how an output differs."""
    if bits(expected).dtype != actual.dtype or expected.shape != actual.shape:
        return f"is {actual.dtype}{actual.shape}, expected {expected.dtype}{expected.shape}"
    tolerance = TOLERANCE.get("float32" if name in IN_F32 else expected.dtype.name)
    if tolerance is None:
        wrong = bits(expected) != actual
        if expected.dtype.name.startswith("float"):  # small ones: neighbours, as XLA rounds elsewhere; any sign of NaN
            wrong &= np.abs(bits(expected).astype(int) - actual) > 1
            wrong &= ~(np.isnan(expected.astype(np.float32)) & np.isnan(actual.view(expected.dtype).astype(np.float32)))
    else:
        ours = actual.view(expected.dtype)
        wide = np.complex128 if expected.dtype.kind == "c" else np.float64
        x, y = expected.astype(wide), ours.astype(wide)
        finite = np.abs(x[np.isfinite(x)])
        bound = tolerance * (np.abs(x) + np.clip(finite.max(initial=0) * 0.05, 1e-2, 1))
        with np.errstate(all="ignore"):
            wrong = ~((np.abs(x - y) <= bound) | (x == y) | (np.isnan(x) & np.isnan(y)))
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{int(wrong.sum())} of {wrong.size} differ, at {at}: {actual[at]}, expected {bits(expected)[at]}"


def run(tool, device, names, folder):
    """name -> the report's object."""
    out = folder / device
    found, rest = {}, list(names)
    while rest:  # a crash costs the file it happened in, no other
        result = subprocess.run([tool, *[folder / f"{n}.hlo" for n in rest], f"--device={device}", f"--inputs={folder}",
                                 f"--output-dir={out}", "--report=json"], capture_output=True, text=True, check=False)
        for line in result.stdout.splitlines():
            entry = json.loads(line)
            found[pathlib.Path(entry["file"]).name.removesuffix(".hlo")] = entry
        lost = [n for n in rest if n not in found]
        if lost:
            found[lost[0]] = {"status": "error", "error": f"exit status {result.returncode}"}
        rest = lost[1:]
    return found


def main():
    names = [a for a in sys.argv[2:] if not a.startswith("--")]
    keep = [a.removeprefix("--keep=") for a in sys.argv if a.startswith("--keep=")]
    names = [n for n in PROGRAMS if not names or any(fnmatch.fnmatch(n, p) for p in names)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(keep[0] if keep else temporary)
        folder.mkdir(parents=True, exist_ok=True)
        expected, failures = {}, 0
        for name in names:
            try:
                expected[name] = dump(name, folder)
            except Exception as error:  # pylint: disable=broad-except
                print(f"{name}: JAX itself refuses: {str(error).splitlines()[0][:160]}")
        for device in ("interpreter", "cpu"):
            reports = run(sys.argv[1], device, expected, folder)
            for name, values in expected.items():
                complaint = None
                if reports[name]["status"] != "ok":
                    complaint = reports[name]["error"]
                else:
                    with np.load(folder / device / f"{name}.npz") as outputs:
                        wrong = [(path, difference(name, value, outputs[f"o{i}"])) for i, (path, value) in enumerate(values)]
                    complaint = "; ".join(f"{path or 'result'}: {how}" for path, how in wrong if how)
                if complaint:
                    failures += 1
                    print(f"{device}: {name}: {complaint[:400]}")
        print(f"{len(expected)} programs on 2 devices, {failures} failures")
        sys.exit(failures > 0)


if __name__ == "__main__":
    main()
