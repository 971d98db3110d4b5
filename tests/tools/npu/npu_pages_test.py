#!/usr/bin/env python3
"""Pages about the NPU in headless Chromium; skipped without one.  npu_pages_test.py NPU_EXPLORE"""

import html
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "support"))

import chromium  # noqa: E402  (of tests/support)

EXPLORE = pathlib.Path(sys.argv.pop(1))


class NpuPagesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.page = pathlib.Path(folder.name) / "page.html"

    def tool(self, name, *arguments, **environment):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("NPU_")}
        return subprocess.run([str(EXPLORE.with_name(name)), *map(str, arguments)], capture_output=True, text=True,
                              check=True, timeout=100, env={**clean, **environment})

    def render(self):
        dom, console = chromium.render(self.page)
        self.assertEqual(console, [])
        return dom

    def test_a_sweep_is_a_dot_for_each_machine_and_a_front(self):
        result = self.tool("npu-explore", "--sweep", "mxu.rows=16..128", "spm.kb=64,256", f"--page={self.page}",
                           ROOT / "examples" / "npu" / "layers" / "gemm.csv")
        dom = self.render()
        front = int(re.search(r", (\d+) on the front of area_mm2 and cycles", result.stderr)[1])
        self.assertEqual(len(re.findall(r'<circle data-point="\d+"', dom)), 8)
        # Computed again by the page's script.
        self.assertIn(f"{front} of 8 machines are on the front of area_mm2 and cycles", dom)
        self.assertEqual(len(re.findall(r'<circle[^>]*class="front"', dom)), front)
        self.assertEqual(len(re.findall(r'<tr[^>]*class="front"', dom)), front)

    def test_the_report_has_the_figures_of_the_summary(self):
        result = self.tool("lazuli-run", "--device=npu", "--repeat=3", ROOT / "examples" / "jit_mlp.hlo",
                           NPU_REPORT=str(self.page), LAZULI_OP_FILTER="0", LAZULI_DENY_OPS="log")
        [summary] = re.findall(r"^npu:0 .*\n.*on the host.*$", result.stderr, re.MULTILINE)
        seconds, runs, launches, transfers, used, energy = re.search(
            r"programs, (.*) of simulated time \(runs (.*), launches (.*), \d+ transfers (.*)\), "
            r"array (.*) % of its peak, (.*) \(horowitz45\)", summary).groups()
        dom = self.render()
        self.assertIn(summary, html.unescape(dom))
        rows = {}
        for depth, name, value in re.findall(r'<td class="i(\d)">([^<]*)</td><td>([^<]*)</td>', dom):
            rows[html.unescape(name)] = (int(depth), value)
        self.assertEqual(rows["simulated time"], (0, seconds))
        self.assertEqual(rows["runs of programs"], (1, runs))
        self.assertEqual(rows["launches"], (1, launches))
        self.assertEqual(rows["transfers between host and device"], (1, transfers))
        self.assertEqual(rows["energy of runs (horowitz45)"], (0, energy))
        self.assertGreater(float(used), 1)

        # The parts of a node add up to it, each rounded to three digits.
        def number(text):
            value, unit = text.split()
            return float(value) * {"u": 1e-6, "m": 1e-3}.get(unit[:-1], 1)

        def parts(depth, *names):
            return sum(number(value) for name, (d, value) in rows.items() if d == depth and (not names or name in names))

        self.assertAlmostEqual(parts(1, "runs of programs", "launches", "transfers between host and device") / number(seconds), 1, 2)
        self.assertAlmostEqual(parts(2) / number(runs), 1, 2)
        self.assertAlmostEqual(parts(1, "macs", "accumulators", "scratchpad", "vectors", "dram", "links", "leakage") / number(energy),
                               1, 2)

        # The array's share of its peak: products of all ops, in the cycles of the runs.
        [busy] = re.findall(r'<td>mx</td><td class="text">array</td><td>(\d+)</td>', dom)
        cycles = number(runs) * 1e9
        self.assertLess(float(used), 100 * int(busy) / cycles)
        self.assertTrue(re.search(r'<td>dot_general[^<]*</td><td class="text"></td><td>3</td>', dom))
        self.assertIn("<td>log</td><td>3</td><td class=\"text\">denied-by-filter</td>", dom)
        self.assertGreater(len(re.findall(r"<circle[^>]*><title>", dom)), 5)


if __name__ == "__main__":
    chromium.need_chromium()
    unittest.main()
