"""The example and the README's program run, and learn exactly what the C++ demo learns. On made-up digits."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS, DEMO = os.environ.get("LAZULI_DIGITS"), os.environ.get("LAZULI_DEMO")
EPOCH = re.compile(r"epoch (\d): test accuracy ([0-9.]+) %")

pytestmark = pytest.mark.skipif(not DIGITS or not DEMO, reason="LAZULI_DIGITS and LAZULI_DEMO are not set")


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_lenet_reaches_the_accuracy_of_the_demo():
    options = ["--data", DIGITS, "--limit", "700"]
    python = run(sys.executable, ROOT / "examples/python/lenet.py", *options)
    assert len(EPOCH.findall(python)) == 2
    assert EPOCH.findall(python) == EPOCH.findall(run(DEMO, *options))
    assert "5 compilations so far" in python.splitlines()[-1]


def test_mistakes_are_one_line():
    result = subprocess.run([sys.executable, ROOT / "examples/python/lenet.py", "--data", "nowhere"],
                            capture_output=True, text=True)
    assert result.returncode == 1
    assert re.fullmatch(r"lenet.py: cannot read nowhere/train-images-idx3-ubyte; .*\(lenet.py:\d+\)\n", result.stderr)


def test_the_program_of_the_readme_runs():
    program, = re.findall(r"```python\n(.*?)```", (ROOT / "python/README.md").read_text(), re.DOTALL)
    assert "data/mnist" in program
    run(sys.executable, "-c", program.replace("data/mnist", DIGITS) + "\nprint(loss.item())")
