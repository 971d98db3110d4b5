#!/usr/bin/env python3
"""What lazuli_config answers and reports.  lazuli_config_test.py LAZULI_CONFIG"""

import os
import subprocess
import sys
import tempfile
import unittest

CONFIG = sys.argv.pop(1)


def run(*arguments, **environment):
    return subprocess.run([CONFIG, *arguments], env=dict(os.environ, **environment), capture_output=True, text=True,
                          check=False)


class LazuliConfigTest(unittest.TestCase):
    def test_the_doctor_finds_a_working_machine(self):
        result = run("--doctor")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertRegex(result.stdout, r"(?m)^lazuli +\d+\.\d+\.\d+, \w+, build [0-9a-f]{40}$")
        self.assertRegex(result.stdout, r"(?m)^cpu:0 .*; self-test passed$")
        self.assertRegex(result.stdout, r"(?m)^interpreter:0 +the evaluator, on one thread; self-test passed$")
        self.assertRegex(result.stdout, r"(?m)^default +cpu:0$")
        self.assertRegex(result.stdout, r"(?m)^verdict +everything works$")

    def test_the_doctor_names_what_does_not_work(self):
        result = run("--doctor", PJRT_DEVICE="tpu", LAZULI_DEBUG="much")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, "")
        self.assertRegex(result.stdout, r"(?m)^environment +PJRT_DEVICE=tpu$")
        self.assertRegex(result.stdout, r"(?m)^environment +LAZULI_DEBUG.*much")
        self.assertRegex(result.stdout, r"(?m)^default +.*tpu")
        self.assertRegex(result.stdout, r"(?m)^verdict +something does not work")

    def test_the_doctor_looks_at_the_kernels_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertRegex(run("--doctor", XLA_PERSISTENT_CACHE_PATH=folder).stdout,
                             rf"(?m)^kernels +kept in {folder}: 0 MiB of at most 1024 MiB$")
            os.chmod(folder, 0o777)
            result = run("--doctor", XLA_PERSISTENT_CACHE_PATH=folder)
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stdout, rf"(?m)^kernels +not kept: others may write to the folder {folder}")

    def test_paths_are_those_of_the_program(self):
        prefix = os.path.dirname(os.path.dirname(os.path.realpath(CONFIG)))
        self.assertEqual(run("--prefix").stdout, prefix + "\n")
        self.assertIn(f"-I{prefix}/include", run("--cflags").stdout)
        self.assertIn("-llazuli", run("--libs").stdout)

    def test_other_options_are_refused(self):
        for arguments in [[], ["--doctors"], ["--version", "--libs"]]:
            result = run(*arguments)
            self.assertEqual(result.returncode, 1)
            self.assertIn("lazuli_config: takes one of --doctor", result.stderr)


if __name__ == "__main__":
    unittest.main()
