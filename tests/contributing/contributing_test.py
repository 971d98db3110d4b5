#!/usr/bin/env python3
"""The diffs of CONTRIBUTING.md are all that a function and a layer cost: applied to a copy of the tree, they build and run.

usage: contributing_test.py SOURCE WORK [CMAKE_OPTION...]     WORK is kept, so that a second run compiles only what changed
"""

import pathlib
import re
import shutil
import subprocess
import sys
import unittest

SOURCE, WORK, OPTIONS = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
TREE, BUILD = WORK / "tree", WORK / "tree/build/contributing"
NOT_COPIED = ("build", ".git", "__pycache__")
PROGRAM = """
import lazuli as lz
x = lz.tensor([-3.0, 0.25, 1.0])
assert lz.deadzone(x).tolist() == [-3, 0, 1]
assert x.deadzone(lambd=2.0).tolist() == lz.nn.functional.deadzone(x, 2.0).tolist() == [-3, 0, 0]
assert "at most lambd" in lz.deadzone.__doc__
assert lz.nn.Deadzone(lambd=2.0)(x).tolist() == [-3, 0, 0]
assert x.deadzone_() is x and x.tolist() == [-3, 0, 1]
"""


def run(*command, **options):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    if result.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}\n{result.stdout[-5000:]}")
    return result.stdout


def files(root):
    return {path.relative_to(root) for path in root.rglob("*")
            if path.is_file() and not set(path.relative_to(root).parts) & set(NOT_COPIED)}


def copy(changed):
    """Makes TREE what SOURCE is, but for the files that the diffs change, without touching what is the same."""
    for path in files(TREE) - files(SOURCE):
        (TREE / path).unlink()
    for path in files(SOURCE):
        source, target = SOURCE / path, TREE / path
        if target.is_file() and path.as_posix() not in changed and source.read_bytes() == target.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


class ContributingTest(unittest.TestCase):
    def test_its_diffs_are_a_function_and_a_layer(self):
        diffs = re.findall(r"^```diff\n(.*?)^```$", (SOURCE / "CONTRIBUTING.md").read_text(), re.DOTALL | re.MULTILINE)
        changed = [re.findall(r"^\+\+\+ b/(.*)$", diff, re.MULTILINE) for diff in diffs]
        self.assertEqual([len(paths) for paths in changed], [3, 2])
        copy({path for paths in changed for path in paths})
        for diff in diffs:
            run("patch", "-p1", "--no-backup-if-mismatch", cwd=TREE, input=diff)
        run("cmake", "-S", TREE, "-B", BUILD, "-G", "Ninja", "-D", "LAZULI_TESTS=ON", "-D", "LAZULI_PYTHON=ON",
            "-D", "LAZULI_EXAMPLES=OFF", *OPTIONS)
        run("cmake", "--build", BUILD, "--target", "cpp_api_nn_test", "lazuli_python_package")
        output = run(BUILD / "tests/cpp_api/nn/cpp_api_nn_test",
                     "--gtest_filter=ActivationsTest.GivePyTorchs*:LayersTest.Deadzone*", cwd=TREE)
        self.assertIn("[  PASSED  ] 2 tests", output)
        run(sys.executable, "-c", PROGRAM, env={"PYTHONPATH": str(BUILD / "python")})
        self.assertIn("`deadzone(Tensor x, Scalar lambd=0.5) -> Tensor`", (BUILD / "generated/docs/functions.md").read_text())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
