#!/usr/bin/env python3
"""What lazuli-opt prints, writes and refuses.  lazuli_opt_test.py LAZULI_OPT"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

OPT = sys.argv.pop(1)
HLO = """HloModule adds
ENTRY main {
  p = f32[4] parameter(0)
  a = f32[4] add(p, p)
  b = f32[4] add(p, p)
  ROOT m = f32[4] multiply(a, b)
}
"""


def run(*arguments, text=HLO):
    return subprocess.run([OPT, *arguments], input=text, capture_output=True, text=True, check=False)


class LazuliOptTest(unittest.TestCase):
    def fails(self, message, *arguments, text=HLO):
        result = run(*arguments, text=text)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stdout, "")
        self.assertIn(f"lazuli-opt: {message}", result.stderr)

    def test_runs_the_simplification_pipeline(self):
        result = run("-")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.count(" add("), 1)

    def test_runs_only_the_passes_it_is_given(self):
        self.assertEqual(run("-", "--passes=dce").stdout.count(" add("), 2)
        self.assertEqual(run("-", "--passes=dce, cse").stdout.count(" add("), 1)

    def test_runs_nothing(self):
        self.assertEqual(run("-", "--pipeline=none").stdout.count(" add("), 2)

    def test_prints_graphs(self):
        self.assertTrue(run("-", "--emit=dot").stdout.startswith("digraph"))

    def test_output_reads_back(self):
        once = run("-").stdout
        self.assertEqual(run("-", text=once).stdout, once)

    def test_writes_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder, "out.hlo")
            result = run("-", "-o", str(out))
            self.assertEqual((result.returncode, result.stdout), (0, ""))
            self.assertEqual(out.read_text(), run("-").stdout)
            self.assertEqual([p.name for p in out.parent.iterdir()], ["out.hlo"])

    def test_lists(self):
        self.assertIn("fold_transposes ", run("--list-passes").stdout)
        self.assertIn("add-zero\n", run("--list-rules").stdout)
        self.assertIn("get-tuple-element\n", run("--list-opcodes").stdout)
        self.assertIn("usage: lazuli-opt", run("--help").stdout)

    def test_errors_are_one_sentence(self):
        self.fails("no file")
        self.fails("cannot read /nonexistent", "/nonexistent")
        self.fails("unknown option --fast", "-", "--fast")
        self.fails("two files, - and x", "-", "x")
        self.fails("-o needs", "-", "-o")
        self.fails("--emit=png: there are hlo and dot", "-", "--emit=png")
        self.fails("--pipeline=fast: there are simplify and none", "-", "--pipeline=fast")
        self.fails("--passes or --pipeline, not both", "-", "--passes=dce", "--pipeline=none")
        self.fails("there is no pass ces; there are cse, ", "-", "--passes=ces")
        self.fails("cannot ", "-", "-o", "/proc/nothing/out.hlo")

    def test_errors_in_the_text_name_the_place(self):
        self.fails("-:3:", "-", text="ENTRY main {\n  p = f32[4] parameter(0)\n  ROOT m = f32[4] ad(p, p)\n}\n")


if __name__ == "__main__":
    unittest.main()
