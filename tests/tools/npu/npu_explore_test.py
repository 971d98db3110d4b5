#!/usr/bin/env python3
"""What npu-explore finds and refuses.  npu_explore_test.py NPU_EXPLORE (the other tools lie beside it)"""

import csv
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

EXPLORE = pathlib.Path(sys.argv.pop(1))
ROOT = pathlib.Path(__file__).resolve().parents[3]
GEMM = ROOT / "examples" / "npu" / "layers" / "gemm.csv"

# A product that the array has work for, an activation for the vector unit.
PROGRAM = """HloModule dense
ENTRY main {
  x = f32[96,200] parameter(0)
  w = f32[200,70] parameter(1)
  y = f32[96,70] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT z = f32[96,70] tanh(y)
}
"""
# f64 is nothing that the machine has.
MIXED = PROGRAM.replace("ROOT z = f32[96,70] tanh(y)", "d = f64[96,70] convert(y)\n  ROOT z = f64[96,70] negate(d)")


def tool(name, *arguments, **environment):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("NPU_")}
    return subprocess.run([str(EXPLORE.with_name(name)), *map(str, arguments)], capture_output=True, text=True,
                          check=False, timeout=100, env={**clean, **environment})


class NpuExploreTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.program = self.folder / "dense.hlo"
        self.program.write_text(PROGRAM, encoding="utf-8")
        self.page = self.folder / "page.html"

    def explore(self, *arguments):
        result = tool("npu-explore", f"--page={self.page}", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return list(csv.DictReader(io.StringIO(result.stdout)))

    def test_every_point_is_what_a_run_of_that_machine_alone_takes(self):
        rows = self.explore("--sweep", "mxu.rows+mxu.cols=16..64", "spm.kb=64,256", "--jobs=3", self.program)
        self.assertEqual([(r["mxu.rows"], r["mxu.cols"], r["spm.kb"]) for r in rows],
                         [(n, n, kb) for n in ("16", "32", "64") for kb in ("64", "256")])
        self.assertEqual(len({r["cycles"] for r in rows}), len(rows))
        for row in rows:
            keys = ",".join(f"{key}={row[key]}" for key in ("mxu.rows", "mxu.cols", "spm.kb"))
            [alone] = self.explore(f"--set={keys}", self.program)
            for column in alone.keys() - {"pareto"}:
                self.assertEqual(alone[column], row[column], f"{keys}: {column}")
            npux = self.folder / "p.npux"
            opt = tool("lazuli-opt", self.program, "--pipeline=npu", "--emit=npux", "-o", npux, NPU_SET=keys)
            self.assertEqual(opt.returncode, 0, opt.stderr)
            report = json.loads(tool("npu-run", npux, "--seed=1", "--report=json").stdout)
            self.assertEqual(int(row["cycles"]), report["cycles"])
            self.assertEqual(int(row["macs"]), 96 * 200 * 70)
            self.assertAlmostEqual(float(row["energy_uj"]), 1e6 * report["devices"][0]["energy"]["joules"], places=2)

    def test_the_front_is_those_that_no_other_beats(self):
        rows = self.explore("--sweep", "mxu.rows=8..64", "spm.kb=64..256", "dram.gbs=12.8,51.2", GEMM,
                            "--objectives=energy_uj,cycles")
        points = [(float(r["energy_uj"]), float(r["cycles"])) for r in rows]
        for row, (x, y) in zip(rows, points):
            beaten = any(a <= x and b <= y and (a, b) != (x, y) for a, b in points)
            self.assertEqual(row["pareto"], "0" if beaten else "1", row)

    def test_ranges_double_multiply_and_step_and_end_where_they_say(self):
        for values, expected in [("16..100", "16 32 64 100"), ("4..64*4", "4 16 64"), ("8..20+6", "8 14 20"), ("16,8..16", "16 8")]:
            rows = self.explore("--sweep", f"mxu.rows={values}", "--estimate", GEMM)
            self.assertEqual([r["mxu.rows"] for r in rows], expected.split())
        rows = self.explore("--sweep", "dram.gbs=6.4..25.6", "mxu.dataflow=ws,os", "--estimate", GEMM)
        self.assertEqual([r["dram.gbs"] for r in rows], ["6.4", "6.4", "12.8", "12.8", "25.6", "25.6"])

    def test_estimates_are_those_of_npu_layers(self):
        for row in self.explore("--sweep", "mxu.cols=32,128", "--estimate", GEMM):
            layers = tool("npu-layers", f"--topology={GEMM}", "--total", f"--set=mxu.cols={row['mxu.cols']}",
                          "--columns=layer,cycles_incl_prefetch,macs").stdout
            self.assertEqual([row["cycles"], row["macs"]], layers.splitlines()[-1].split(",")[1:])

    def test_layers_of_networks_are_programs_products_and_convolutions(self):
        topology = self.folder / "net.csv"
        topology.write_text("name,...\nc,8,8,3,3,4,20,2,\nfc,5,7,9,\nc2,8,8,3,3,4,20,2,\n", encoding="utf-8")
        [row] = self.explore("--sweep", "mxu.rows=16", topology)
        self.assertEqual(int(row["macs"]), 2 * 3 * 3 * 36 * 20 + 5 * 7 * 9)
        [wide] = self.explore("--sweep", "mxu.rows=16", "--type=f32", topology)
        self.assertGreater(int(wide["cycles"]), int(row["cycles"]))

    def test_what_the_machine_lacks_runs_on_the_host_and_is_counted(self):
        self.program.write_text(MIXED, encoding="utf-8")
        [row] = self.explore("--sweep", "mxu.rows=32", self.program)
        self.assertEqual((row["host_ops"], row["macs"]), ("2", str(96 * 200 * 70)))
        self.assertGreater(float(row["host_us"]), 5)

    def test_a_machine_that_cannot_be_is_said_and_the_others_go_on(self):
        result = tool("npu-explore", "--sweep", "spm.kb=16,17", "--set=spm.banks=32", f"--page={self.page}", self.program)
        rows = list(csv.DictReader(io.StringIO(result.stdout)))
        self.assertEqual(result.returncode, 0)
        self.assertEqual([r["error"] for r in rows],
                         ["", "spm.kb=17 is not a multiple of spm.banks=32 words of spm.bank_bytes=64"])
        self.assertIn("1 of 2 machines were not measured (column error), such as spm.kb=17: ", result.stderr)
        self.assertIn("spm.kb=17 is not a multiple", self.page.read_text(encoding="utf-8"))

    def test_the_page_has_all_and_needs_no_network(self):
        rows = self.explore("--sweep", "mxu.rows=16..64", "spm.kb=64,256", self.program)
        page = self.page.read_text(encoding="utf-8")
        self.assertNotIn("http", page)
        data = json.loads(re.search(r'<script id=data type="application/json">(.*?)</script>', page, re.DOTALL)[1])
        columns = [c["name"] for c in data["columns"]]
        self.assertEqual([str(p[1][columns.index("cycles")]) for p in data["points"]], [r["cycles"] for r in rows])
        self.assertEqual(page.count("class=front"), sum(r["pareto"] == "1" for r in rows))
        self.assertIn("mxu.rows 16 &rarr; 32", page)

    def test_says_what_is_wrong(self):
        for arguments, message in [
            ([], "no file; --help says how to use this"),
            (["--sweep", "mxu.rows=16..4096", "x.hlo"], "--sweep: mxu.rows=2048: it is 1 to 1024 PEs"),
            (["--sweep", "spm.banks=12", "x.hlo"], "--sweep: spm.banks=12: it is 1 to 1024 banks (powers of 2)"),
            (["--sweep", "mxu.dataflow=ws,xs", "x.hlo"], "--sweep: mxu.dataflow=xs: it is ws, os or is"),
            (["--sweep", "mxu.row=16", "x.hlo"], "--sweep: there is no key mxu.row; is it mxu.rows?"),
            (["--sweep", "dram.mb=1..2", "x.hlo"], "--sweep: dram.mb changes neither cycles nor energy, so there is nothing to sweep"),
            (["--sweep", "mxu.rows=64..16", "x.hlo"], "--sweep: mxu.rows=64..16: a range begins with its smaller end"),
            (["--sweep", "dma.issue=0..8", "x.hlo"],
             "--sweep: dma.issue=0..8: multiplying what is not positive leads nowhere; +STEP adds"),
            (["--sweep", "mxu.rows=8..", "x.hlo"],
             "--sweep: mxu.rows=8..: a range is FIRST..LAST (doubling), FIRST..LAST*FACTOR or FIRST..LAST+STEP"),
            (["--sweep", "mxu.rows=8", "mxu.rows+mxu.cols=16", "x.hlo"],
             "mxu.rows is swept twice; values of one axis are joined by commas"),
            (["--sweep", "mxu.rows=1..1024+1", "mxu.cols=1..1024+1", "x.hlo"],
             "that would be 1048576 points, at most 10000 are allowed (--most-points)"),
            (["--objectives=cycles,price", "x.hlo"], "there is no column price; there are cycles, time_us, "),
            (["--estimate", self.program], f"--estimate is for layers (FILE.csv), {self.program} is a program"),
            (["--set=compat.scalesim=true", GEMM], "compat.scalesim is a way to count layers: it goes with --estimate"),
            (["a.csv", "b.csv"], "two files: a.csv and b.csv; an axis reads KEY=VALUES"),
            (["--sweep", "spm.kb=17", "--set=spm.banks=32", self.program], "no machine was measured; spm.kb=17: spm.kb=17 is not a multiple"),
        ]:
            result = tool("npu-explore", *arguments, "--page=")
            self.assertTrue(result.stderr.startswith(f"npu-explore: {message}"), (arguments, result.stderr))
            self.assertEqual((result.returncode, result.stdout), (1, ""))


if __name__ == "__main__":
    unittest.main()
