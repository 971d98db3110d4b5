#!/usr/bin/env python3
"""Pages of profiles that were saved.  lazuli_profile_test.py LAZULI_PROFILE"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = sys.argv.pop(1)
TRACE = json.dumps({"traceEvents": [{"ph": "X", "pid": 1, "tid": 1, "ts": 0, "dur": 5, "name": "run", "args": {"kind": "run"}}]})


class LazuliProfileTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.trace = self.folder / "run.json"
        self.trace.write_text(TRACE)

    def tool(self, *arguments):
        return subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=100)

    def fails(self, *arguments):
        result = self.tool(*arguments)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        return result.stderr.removeprefix("lazuli-profile: ").strip()

    def test_a_file_becomes_a_page_beside_it(self):
        result = self.tool(self.trace)
        page = self.folder / "run.html"
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, f"{page}: a page for a browser\n", ""))
        self.assertIn(TRACE, page.read_text())
        self.assertEqual(self.tool(self.trace, "-o", self.folder / "other.html").returncode, 0)
        self.assertEqual((self.folder / "other.html").read_text(), page.read_text())

    def test_what_is_no_profile_is_said(self):
        text = self.folder / "notes.txt"
        text.write_text("hello")
        self.assertEqual(self.fails(text), f"{text}: is not a profile, which is the JSON of a trace")
        self.assertEqual(self.fails(self.trace, "-o", "x.json"), "-o x.json: of a file it makes a page, FILE.html")
        packed = self.folder / "run.json.gz"
        packed.write_bytes(b"\x1f\x8b")
        self.assertEqual(self.fails(packed), f"{packed}: is compressed; gunzip it first")
        self.assertIn("cannot connect to nowhere", self.fails("nowhere"))
        self.assertEqual(self.fails(), "which SOCKET or FILE.json? --help says more")


if __name__ == "__main__":
    unittest.main()
