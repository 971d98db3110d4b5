#!/usr/bin/env python3
"""Files of torch.save(), of the new format and the old one, are read; damaged ones are refused as tests/fuzz/files.py says.

    torch_files_test.py FOLDER      FOLDER holds the package lazuli, as build/PRESET/python does

LAZULI_FUZZ_FILES=100000 damages more of them.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import torch
from cases import report

sys.path.insert(0, sys.argv[1])
os.environ.setdefault("PJRT_DEVICE", "interpreter")
import lazuli  # noqa: E402

FUZZER = pathlib.Path(__file__).parents[1] / "fuzz/files.py"


def read(new):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.pt")
        layer = torch.nn.Linear(3, 2)
        whole = {"model": layer.state_dict(), "half": torch.ones(2, dtype=torch.bfloat16), "epoch": 3, "parameter": layer.weight, "names": ["a", ("b", None)]}
        torch.save(whole, path, _use_new_zipfile_serialization=new)
        got = lazuli.load(path)
        assert list(got) == list(whole) and got["epoch"] == 3 and got["names"] == whole["names"] and got["half"].dtype == lazuli.bfloat16
        assert got["model"]["weight"].tolist() == layer.weight.tolist() and got["parameter"].requires_grad
        lazuli.nn.Linear(3, 2).load_state_dict(got["model"])
        torch.save(layer, path, _use_new_zipfile_serialization=new)
        try:
            lazuli.load(path)
        except Exception as error:
            assert path in str(error) and "Weights only load failed" in str(error), error
        else:
            raise AssertionError("a module was read without trust")


def damage(kind):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, "-W", "ignore", FUZZER, kind, "0", "0", os.environ.get("LAZULI_FUZZ_FILES", "150")], cwd=folder, capture_output=True,
                              text=True, check=False, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        wrong = [line for line in done.stdout.splitlines() if "wrong" in line]
        assert done.returncode == 0 and not wrong, f"{done.returncode} {wrong[:5]} {done.stderr[-1000:]}"


if __name__ == "__main__":
    sys.exit(report({"new format": lambda: read(True), "old format": lambda: read(False), "damaged, new format": lambda: damage("OfTorch"),
                     "damaged, old format": lambda: damage("OfOldTorch")}, "files"))
