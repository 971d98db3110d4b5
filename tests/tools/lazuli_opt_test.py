#!/usr/bin/env python3
"""What lazuli-opt prints, writes and refuses.  lazuli_opt_test.py LAZULI_OPT"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import bad_modules

OPT = sys.argv.pop(1)
HLO = """HloModule adds
ENTRY main {
  p = f32[4] parameter(0)
  a = f32[4] add(p, p)
  b = f32[4] add(p, p)
  ROOT m = f32[4] multiply(a, b)
}
"""


def run(*arguments, text=HLO, **environment):
    return subprocess.run([OPT, *arguments], input=text, capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})


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

    def test_prints_what_the_cpu_makes_of_it(self):
        optimised = run("-", "--pipeline=cpu").stdout
        plan = run("-", "--emit=buffers").stdout
        self.assertRegex(plan, r"(?m)^thunks: 1, arena: 0 bytes$")
        self.assertRegex(plan, r"(?m)^  b0 parameter 16 bytes 0$")
        self.assertRegex(plan, r"(?m)^output 0 f32\[4\] in b1")
        if "fusion(" in optimised:  # a build without LLVM has no kernels
            self.assertIn("define ", run("-", "--emit=llvm").stdout)
            self.assertIn(".text", run("-", "--emit=asm").stdout)
            self.assertIn(" fusion(", run("-", "--passes=cse,cpu_fuse").stdout)

    def test_prints_what_the_npu_makes_of_it(self):
        self.assertIn("vx.run", run("-", "--pipeline=npu", "--emit=asm").stdout)
        self.assertIn("dma.ld", run("-", "--pipeline=npu", "--emit=tiles").stdout)
        self.assertIn("\nscratchpad ", run("-", "--pipeline=npu", "--emit=report").stdout)
        self.fails("--emit=llvm: there are npux, asm, tiles, report", "-", "--pipeline=npu", "--emit=llvm")

    def test_kernels_are_printed_in_order_and_whole(self):
        ops = ["sine", "cosine", "exponential", "negate", "tanh", "log", "sqrt", "abs"]
        types = [f"f32[{i + 2}]" for i in range(len(ops))]
        lines = [f"  p{i} = {types[i]} parameter({i})" for i in range(len(ops))]
        lines += [f"  r{i} = {types[i]} {op}(p{i})" for i, op in enumerate(ops)]
        results = ", ".join(f"r{i}" for i in range(len(ops)))
        lines += [f"  ROOT t = ({', '.join(types)}) tuple({results})"]
        text = "HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}\n"
        if "fusion(" not in run("-", "--pipeline=cpu", text=text).stdout:
            self.skipTest("a build without LLVM has no kernels")
        with tempfile.TemporaryDirectory() as cache:
            first = run("-", "--emit=llvm", text=text, XLA_PERSISTENT_CACHE_PATH=cache).stdout
            self.assertEqual(first.count("define "), len(ops))
            for _ in range(5):
                self.assertEqual(run("-", "--emit=llvm", text=text, XLA_PERSISTENT_CACHE_PATH=cache).stdout, first)

    def test_the_binary_form_reads_back(self):
        with tempfile.TemporaryDirectory() as folder:
            proto = pathlib.Path(folder, "m.pb")
            self.assertEqual(run("-", "--pipeline=none", "--emit=proto", "-o", str(proto)).returncode, 0)
            self.assertEqual(run(str(proto), "--pipeline=none").stdout, run("-", "--pipeline=none").stdout)
            proto.write_bytes(proto.read_bytes()[:-3])
            self.fails(f"{proto}: the bytes are not an HloModuleProto: ", str(proto))

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
        self.assertIn("cpu_fuse ", run("--list-passes").stdout)
        self.assertIn("add-zero\n", run("--list-rules").stdout)
        self.assertIn("get-tuple-element\n", run("--list-opcodes").stdout)
        self.assertIn("usage: lazuli-opt", run("--help").stdout)

    def test_errors_are_one_sentence(self):
        self.fails("no file")
        self.fails("cannot read /nonexistent", "/nonexistent")
        self.fails("unknown option --fast", "-", "--fast")
        self.fails("two files, - and x", "-", "x")
        self.fails("-o needs", "-", "-o")
        self.fails("--emit=png: there are hlo, proto, dot, llvm, asm, buffers", "-", "--emit=png")
        self.fails("--pipeline=fast: there are simplify, cpu, npu, none", "-", "--pipeline=fast")
        self.fails("--emit=asm comes after all passes of the CPU", "-", "--emit=asm", "--pipeline=none")
        self.fails("--passes or --pipeline, not both", "-", "--passes=dce", "--pipeline=none")
        self.fails("there is no pass ces; there are cse, ", "-", "--passes=ces")
        self.fails("cannot ", "-", "-o", "/proc/nothing/out.hlo")

    def test_bad_modules(self):
        for name, (text, begin) in bad_modules.MODULES.items():
            with self.subTest(name):
                self.fails(f"-:{begin}", "-", "-o", "/proc/nothing/out.hlo", text=text)

    def test_errors_in_the_text_name_the_place(self):
        self.fails("-:3:", "-", text="ENTRY main {\n  p = f32[4] parameter(0)\n  ROOT m = f32[4] ad(p, p)\n}\n")


if __name__ == "__main__":
    unittest.main()
