"""Damaged files of every kind are read, or refused by the documented error with the file's name: never a crash, a hang, memory without bound.

LAZULI_FUZZ_FILES=100000 damages more files of each kind, LAZULI_FUZZ_SEED=... others. What fails stays in the folder that is named.
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import pytest

import files

SEED = os.environ.get("LAZULI_FUZZ_SEED", "0")
COUNT = int(os.environ.get("LAZULI_FUZZ_FILES", 300))
PATIENCE = 60 + COUNT // 5  # seconds, on a machine with other work
TOOLS = {"Npz": "LAZULI_RUN", "SavedGraph": "LAZULI_GRAPH"}  # variables that name them
SLOW = 10  # what a tool reads: so many times fewer


@pytest.mark.parametrize("kind", files.KINDS)
def test_damaged_files_are_refused_in_a_sentence(kind):
    if kind.startswith("Of") and importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    tool = os.environ.get(TOOLS.get(kind, ""), "")
    if kind in TOOLS and not tool:
        pytest.skip(f"{TOOLS[kind]} names no tool")
    folder = tempfile.mkdtemp(prefix="lazuli_files_")
    count = COUNT // SLOW if tool else COUNT
    process = subprocess.run([sys.executable, "-X", "faulthandler", files.__file__, kind, SEED, "0", str(count), *([tool] if tool else [])],
                             cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False,
                             env={**os.environ, "PJRT_DEVICE": "interpreter", "PYTHONPATH": os.pathsep.join(sys.path)})
    lines = [json.loads(line) for line in process.stdout.splitlines() if line.startswith("{")]
    wrong = [line for line in lines if "wrong" in line]
    if process.returncode or wrong or lines[-1] != {"read": count}:
        last = lines[-1] if lines else None
        pytest.fail(f"{folder}: ended by {process.returncode} at {last}\n{process.stderr[-2000:]}\n" + "\n".join(map(str, wrong[:10])))
    for path in pathlib.Path(folder).rglob("*"):
        if path.is_file():
            path.unlink()
