#!/usr/bin/env python3
"""What npu-layers prints and refuses.  npu_layers_test.py NPU_LAYERS"""

import csv
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

LAYERS = sys.argv.pop(1)


def run(*arguments, stdin="", **environment):
    return subprocess.run([LAYERS, *arguments], input=stdin, capture_output=True, text=True,
                          env={**os.environ, **environment})


class NpuLayersTest(unittest.TestCase):
    TOPOLOGY = "Layer,M,N,K,\ng128,128,128,128,\n"

    def cycles(self, *arguments, **environment):
        result = run("--topology=-", *arguments, stdin=self.TOPOLOGY, **environment)
        self.assertEqual(result.stderr, "")
        self.assertEqual(result.returncode, 0)
        return [int(row["cycles"]) for row in csv.DictReader(io.StringIO(result.stdout))]

    def test_counts_as_scalesim_does(self):
        keys = "mxu.rows=32,mxu.cols=32,compat.scalesim=true,mxu.dataflow="
        self.assertEqual([self.cycles(f"--set={keys}{df}") for df in ("os", "ws", "is")], [[3039], [3551], [3551]])

    def test_machine_comes_from_file_environment_and_options_in_this_order(self):
        self.assertEqual(self.cycles(), [32 + 16 * 128 + 62])
        with tempfile.TemporaryDirectory() as folder:
            config = pathlib.Path(folder) / "chip.toml"
            config.write_text("[mxu]\nrows = 64\ncols = 64\n", encoding="utf-8")
            self.assertEqual(self.cycles(f"--config={config}"), [64 + 4 * 128 + 126])
            self.assertEqual(self.cycles(NPU_CONFIG=str(config), NPU_SET="mxu.cols=128"), [64 + 2 * 128 + 190])
            self.assertEqual(self.cycles("--set=mxu.rows=128", NPU_SET="mxu.cols=128,mxu.rows=8"),
                             [128 + 128 + 254])

    def test_says_what_is_wrong(self):
        for arguments, message in [
            ([], "--topology=FILE.csv is missing; --help lists the options"),
            (["--topology=none.csv"], "cannot read none.csv"),
            (["--topology=-", "--set=mxu.rows=0"], "--set: mxu.rows=0: it is 1 to 1024 PEs"),
            (["--topology=-", "--config=none.toml"],
             "'none.toml' is neither a preset (npu1-edge, npu1-server) nor a file that can be read"),
            (["--topology=-", "--fast"], "unknown option --fast; --help lists them"),
            (["--topology=-"], "-:3: K is 'x': it is a whole number"),
        ]:
            result = run(*arguments, stdin="heading\na,1,2,3,\nb,1,2,x,\n")
            self.assertEqual(result.stderr, f"npu-layers: {message}\n")
            self.assertEqual((result.returncode, result.stdout), (1, ""))

    def test_help_lists_the_options_and_the_keys(self):
        self.assertIn("--topology=FILE.csv", run("--help").stdout)
        self.assertIn("  mxu.rows = 32 (npu1-server: 128)\n", run("--help-config").stdout)


if __name__ == "__main__":
    unittest.main()
