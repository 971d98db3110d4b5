"""Examples run: the lessons keep their promises, and LeNet learns exactly what the C++ demo learns, on made-up digits."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS, DEMO = os.environ.get("LAZULI_DIGITS"), os.environ.get("LAZULI_DEMO")
EPOCH = re.compile(r"epoch (\d): test accuracy ([0-9.]+) %")

needs_digits = pytest.mark.skipif(not DIGITS or not DEMO, reason="LAZULI_DIGITS and LAZULI_DEMO are not set")


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert result.returncode == 0, result.stderr
    return result.stdout


PROMISES = {
    "01_tensors": r"100 steps, 1 compilation\nsame\[0\] = \[7.0, 7.0, .*01_tensors.py:\d+\)\n$",
    "02_autograd": r"dy/dx = tensor\(\[ 3., 12., 27.\]\).*gradients are right: True\n.*02_autograd.py:\d+\)\n$",
    "03_modules": r"\(0\): Linear\(in_features=1, out_features=32, bias=True\).*step 300: loss 0.00.*the copy computes the same: True\n$",
    "04_numpy": r"shared: True\n.*convert it by lazuli.tensor.*(9\d|100) % of the points",
    "05_inside": r'source_file=".*05_inside.py".*found again: 1\n.*label 12 is out of range.*05_inside.py:\d+\)\n$',
    "06_recurrent": r"step 100: loss 0\..*compiled for other lengths: 0\n(9\d|100) % remembered\n$",
    "07_least_squares": r"coefficients: \[(1.0|0.9\d?|1.0\d), .*moves the determinant most\n.*the input matrix is singular.*07_least_squares.py:\d+\)\n$",
    "09_loops": r"step 400: loss 0\.0[0-2].*compiled later: 0 traced for each batch: 1\nwords .* score (\d+\.\d+)\nscore of these words: \1\n$",
    "10_transforms": r"sizes of 8 gradients: \[.*clipped to 1 per sample: 0\.\d+\nslope after 6 steps: (0e\+00|\de-0[5-9])\n.*step 200: loss 0\.0[0-2]\d+\n$",
    "08_spectrogram": r"loudest from 2\d\d.*#####.*noise: 0.[45]\d before, 0.[01]\d after\n$",
}


def test_every_lesson_has_a_promise():
    assert sorted(PROMISES) == sorted(path.stem for path in (ROOT / "examples/python").glob("[0-9]*.py"))


@pytest.mark.parametrize("lesson", PROMISES)
def test_lessons_keep_their_promises(lesson):
    assert re.search(PROMISES[lesson], run(sys.executable, ROOT / f"examples/python/{lesson}.py"), re.DOTALL)


@needs_digits
def test_lenet_reaches_the_accuracy_of_the_demo():
    options = ["--data", DIGITS, "--limit", "700"]
    python = run(sys.executable, ROOT / "examples/python/lenet.py", *options)
    assert len(EPOCH.findall(python)) == 2
    assert EPOCH.findall(python) == EPOCH.findall(run(DEMO, *options))
    assert "5 compilations so far" in python.splitlines()[-1]


@needs_digits
def test_mistakes_are_one_line():
    result = subprocess.run([sys.executable, ROOT / "examples/python/lenet.py", "--data", "nowhere"],
                            capture_output=True, text=True)
    assert result.returncode == 1
    assert re.fullmatch(r"lenet.py: cannot read nowhere/train-images-idx3-ubyte; .*\(lenet.py:\d+\)\n", result.stderr)


@needs_digits
def test_the_program_of_the_readme_runs():
    program, = re.findall(r"```python\n(.*?)```", (ROOT / "python/README.md").read_text(), re.DOTALL)
    assert "data/mnist" in program
    run(sys.executable, "-c", program.replace("data/mnist", DIGITS) + "\nprint(loss.item())")


def test_the_transformer_of_the_readme_learns_its_text():
    program, = re.findall(r"```python\n(import lazuli as torch.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    names = {}
    exec(program.replace("range(100)", "range(40)"), names)
    assert names["loss"].item() < 1
