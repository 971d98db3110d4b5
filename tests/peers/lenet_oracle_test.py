"""The HLO of LeNet's training step, parsed, compiled and run by jaxlib: every output within 1e-4 of ours.

usage: lenet_oracle_test.py LENET_HLO RUN_HLO   (two programs of this folder)
"""
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
from hlo_oracle import Oracle  # noqa: E402

TOLERANCE = 1e-4
DTYPES = {"f32": np.float32, "s64": np.int64}


def draw_parameters(text):
    """Inputs for the entry's parameters: weights and images of the size a network has, labels in [0, 10)."""
    rng = np.random.default_rng(0)
    found = {int(number): (dtype, dims) for dtype, dims, number in
             re.findall(r"= (\w+)\[([\d,]*)\]\S* parameter\((\d+)\)", text[text.index("\nENTRY"):])}
    inputs = []
    for number in range(len(found)):
        dtype, dims = found[number]
        shape = tuple(int(d) for d in dims.split(",") if d)
        x = rng.integers(0, 10, shape) if dtype == "s64" else rng.standard_normal(shape) * 0.05
        inputs.append(np.asarray(x, DTYPES[dtype]))
    return inputs


def largest_difference(ours, theirs):
    scale = np.maximum(1, np.abs(theirs.astype(np.float64)))
    return float((np.abs(ours.astype(np.float64) - theirs) / scale).max(initial=0))


def main():
    lenet_hlo, run_hlo = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        text = subprocess.run([lenet_hlo], check=True, capture_output=True, text=True).stdout
        (folder / "lenet.hlo").write_text(text)
        inputs = draw_parameters(text)
        for i, x in enumerate(inputs):
            (folder / f"p{i}.bin").write_bytes(x.tobytes())
        theirs = Oracle().run(text, inputs)

        failed = False
        for device in ("cpu:0", "interpreter:0"):
            subprocess.run([run_hlo, folder / "lenet.hlo", folder, device], check=True)
            ours = [np.fromfile(folder / f"o{i}.bin", x.dtype).reshape(x.shape) for i, x in enumerate(theirs)]
            worst = max(map(largest_difference, ours, theirs))
            print(f"{device}: {len(theirs)} outputs, largest difference {worst:.3g}")
            failed |= not worst <= TOLERANCE
        sys.exit(failed)


if __name__ == "__main__":
    main()
