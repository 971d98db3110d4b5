#!/usr/bin/env python3
"""Pages about the NPU in headless Chromium; skipped without one.  npu_pages_test.py NPU_EXPLORE"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
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


if __name__ == "__main__":
    chromium.need_chromium()
    unittest.main()
