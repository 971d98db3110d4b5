#!/usr/bin/env python3
"""What npu-as, npu-dis, npu-run and npu-dbg do.  npu_programs_test.py NPU_RUN (the others lie beside it)"""

import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

RUN = pathlib.Path(sys.argv.pop(1))
ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples" / "npu"


def tool(name, *arguments, text=None, **environment):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("NPU_")}
    return subprocess.run([str(RUN.with_name(f"npu-{name}")), *map(str, arguments)], input=text, capture_output=True, text=True,
                          check=False, timeout=60, env={**clean, **environment})


def write_npz(path, **arrays):
    """Arrays as (descr, dims, bytes); without NumPy, which a machine that builds may not have."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, (descr, dims, data) in arrays.items():
            header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({', '.join(map(str, dims))},), }}"
            header += " " * (63 - (10 + len(header)) % 64) + "\n"
            archive.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def read_npy(path, name):
    with zipfile.ZipFile(path) as archive:
        raw = archive.read(f"{name}.npy")
    return raw[10 + struct.unpack("<H", raw[8:10])[0]:]


class NpuProgramsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def ok(self, *arguments, **more):
        result = tool(*arguments, **more)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        return result.stdout

    def fails(self, message, *arguments, **more):
        result = tool(*arguments, **more)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn(message, result.stderr)

    def test_text_and_file_are_the_same_program(self):
        for source in sorted(EXAMPLES.glob("*.s")):
            first, second = self.folder / "a.npux", self.folder / "b.npux"
            self.ok("as", source, "-o", first)
            text = self.folder / "a.s"
            text.write_text(self.ok("dis", first))
            self.ok("as", text, "-o", second)
            self.assertEqual(first.read_bytes(), second.read_bytes(), source)

    def test_runs_with_arrays_of_a_file(self):
        a = bytes(i * 7 % 256 for i in range(128 * 256))
        b = bytes(i * 5 % 256 for i in range(256 * 32))
        write_npz(self.folder / "in.npz", a=("|i1", (128, 256), a), b=("|i1", (256, 32), b))
        out = self.folder / "out.npz"
        text = self.ok("run", EXAMPLES / "01_matmul.s", f"--inputs={self.folder / 'in.npz'}", f"--output={out}", "--report")
        self.assertIn("4,092 cycles, 4.092 us at 1000 MHz", text)
        self.assertIn("macs_int          1,048,576", text)
        self.assertIn("busy mx", text)
        signed = lambda v: v - 256 if v > 127 else v
        c = struct.unpack("<4096i", read_npy(out, "c"))
        for m, n in ((0, 0), (17, 5), (127, 31)):
            self.assertEqual(c[m * 32 + n], sum(signed(a[m * 256 + k]) * signed(b[k * 32 + n]) for k in range(256)))

    def test_options(self):
        source = EXAMPLES / "05_all_reduce.s"
        timed = self.ok("run", source, "--seed=1", f"--output={self.folder / 't.npz'}")
        for more in (["--functional"], ["--jitter=3"], ["--set=strict=false"]):
            text = self.ok("run", source, "--seed=1", f"--output={self.folder / 'f.npz'}", *more)
            self.assertEqual(read_npy(self.folder / "t.npz", "x@3"), read_npy(self.folder / "f.npz", "x@3"))
            self.assertEqual(text == timed, more == ["--set=strict=false"])
        report = json.loads(self.ok("run", source, "--seed=1", "--report=json").splitlines()[0])
        self.assertEqual(len(report["devices"]), 4)
        self.assertEqual(report["devices"][0]["link_bytes"], 6 * 4096)
        energy = report["devices"][0]["energy"]
        self.assertEqual(energy.pop("table"), "horowitz45")
        self.assertAlmostEqual(energy.pop("joules"), sum(energy.values()), delta=1e-12)
        self.assertEqual(self.ok("run", source, "--seed=1", NPU_SET="dram.gbs=25.6"), timed)
        self.assertIn("npu-run FILE", self.ok("run", "--help"))
        self.assertIn("mxu.rows", self.ok("run", "--help-config"))

    def test_errors_name_the_place(self):
        source = EXAMPLES / "05_all_reduce.s"
        self.fails("npu-run: LINK_TIMEOUT at device 0, core 0, pc ", "run", source, "--seed=1", "--lose-put=0")
        self.fails("npu-run: ECC at device 0, core 0, pc ", "run", source, "--seed=1", "--damage-dram=64")
        self.fails("npu-run: no value for x: --inputs=FILE.npz", "run", EXAMPLES / "03_softmax.s")
        self.fails("BAD_BINARY", "run", source, "--seed=1", "--set=mxu.rows=16")
        self.fails("cannot read nothing.npux", "run", "nothing.npux")
        foreign = self.folder / "foreign.npux"
        foreign.write_bytes(b"\x7fELF")
        self.fails("foreign.npux: BAD_BINARY: this is not a program", "dis", foreign)
        wrong = self.folder / "wrong.s"
        wrong.write_text("nop\nfrob r1\n")
        self.fails("wrong.s:2: there is no instruction frob", "as", wrong)
        self.assertFalse((self.folder / "wrong.npux").exists())
        self.fails("npu-run: unexpected --frob", "run", source, "--frob")

    def test_debugger_goes_forwards_and_backwards(self):
        source = EXAMPLES / "04_while.s"
        text = self.ok("dbg", source, "--seed=1", text="step 3\nregs\nback 1\nregs\nbreak 6\ncontinue\nshow 0x400 1\nwatch 0x0\ncontinue\nfrob\n"
                       "array x\nwhere\nclear\ncontinue\nsems\nback 5\nquit\n")
        lines = text.splitlines()
        self.assertEqual(lines[0], "step 3, cycle 2, seq: 2  movi r5, 0   # line 27")
        self.assertEqual(lines[1:4], ["r2=1024", "step 2, cycle 1, seq: 1  movi r2, 1024   # line 26", "r2=1024"])
        self.assertIn("breakpoint at pc 6", text)
        self.assertIn("memory at 0x0 is written", text)
        self.assertIn("there is no command frob", text)
        self.assertIn("device 0 core 0: ", text)
        self.assertIn("the program has ended after ", text)
        self.assertIn("all semaphores are 0", text)

    def test_debugger_stops_at_writes_that_change_nothing(self):
        source = self.folder / "twice.s"
        source.write_text("movi r1, 5\nsts.s32 [0x40], r1\nnop\nsts.s32 [0x40], r1\nhalt\n")
        text = self.ok("dbg", source, text="watch 0x40\ncontinue\ncontinue\ncontinue\nquit\n")
        self.assertEqual(text.count("\nmemory at 0x40 is written\n"), 2)
        self.assertIn("step 4, cycle 6, seq: 3  sts.s32 [r0+64], r1", text)
        self.assertIn("the program has ended after 11 cycles", text)

    def test_a_trace_that_is_cut_says_so(self):
        trace = self.folder / "t.json"

        def events():
            return json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]

        def cuts():
            return [e["name"] for e in events() if e["ph"] == "i" and e["name"].startswith("cut: ")]

        result = tool("run", EXAMPLES / "01_matmul.s", f"--trace={trace}", "--trace-slices=30", "--seed=1")
        kept, all_slices = map(int, re.search(r"the first (\d+) of (\d+) slices; --trace-slices=N", result.stderr).groups())
        self.assertEqual((kept, cuts()), (30, [f"cut: {all_slices - 30} more slices are not shown"]))
        self.ok("run", EXAMPLES / "01_matmul.s", f"--trace={trace}", f"--trace-slices={all_slices}", "--seed=1")
        self.assertEqual(cuts(), [])

        # Of launches of a client: the device's name says it, too.
        for most, cut in [(30, True), (100000, False)]:
            environment = {"NPU_TRACE": str(trace), "NPU_TRACE_SLICES": str(most), "LAZULI_OP_FILTER": "0"}
            result = subprocess.run([RUN.with_name("lazuli-run"), "--device=npu", ROOT / "examples" / "jit_mlp.hlo"],
                                    capture_output=True, text=True, check=True, timeout=60, env={**os.environ, **environment})
            names = [e["args"]["name"] for e in events() if e["ph"] == "M" and e["name"] == "process_name" and e["pid"] == 0]
            self.assertEqual("CUT, the first 30 of " in names[-1], cut)
            self.assertEqual("NPU_TRACE_SLICES=N keeps more" in result.stderr, cut)
            self.assertEqual(["(NPU_TRACE_SLICES=30)" in name for name in cuts()], [True] if cut else [])


if __name__ == "__main__":
    unittest.main()
