#!/usr/bin/env python3
"""Kernels kept on disk: later processes compile nothing, and no state of the folder changes a result.

usage: persistent_cache_test.py PROGRAM   (one that computes the same in every run)
"""
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time
import unittest

program = sys.argv.pop()


class PersistentCacheTest(unittest.TestCase):

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name) / "kernels"

    def tearDown(self):
        self.temporary.cleanup()

    def start(self, folder=None):
        environment = dict(os.environ, LAZULI_DEBUG="1")
        environment.pop("XLA_PERSISTENT_CACHE_PATH", None)
        if folder:
            environment["XLA_PERSISTENT_CACHE_PATH"] = str(folder)
        return subprocess.Popen([program], env=environment, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def finish(self, process):
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        counters = {name: int(value) for name, value in re.findall(r"Counter: (\S+)\n  Value: (\d+)", err)}
        return out, counters, err

    def run_with(self, folder):
        return self.finish(self.start(folder))

    def test_the_second_process_compiles_nothing(self):
        wanted, counters, _ = self.run_with(None)
        compiled = counters["cpu.kernels_compiled"]
        self.assertGreater(compiled, 0)
        self.assertNotIn("PersistentCacheMiss", counters)

        out, counters, _ = self.run_with(self.folder)
        self.assertEqual(out, wanted)
        self.assertEqual(counters["PersistentCacheMiss"], compiled)
        self.assertEqual(len(list(self.folder.iterdir())), compiled)

        out, counters, _ = self.run_with(self.folder)
        self.assertEqual(out, wanted)
        self.assertEqual(counters["PersistentCacheHit"], compiled)
        self.assertNotIn("cpu.kernels_compiled", counters)

    def test_a_damaged_entry_is_compiled_again(self):
        wanted, _, _ = self.run_with(self.folder)
        entry = sorted(self.folder.iterdir())[0]
        entry.write_bytes(entry.read_bytes()[:-1] + b"?")
        out, counters, _ = self.run_with(self.folder)
        self.assertEqual(out, wanted)
        self.assertEqual(counters["cpu.kernels_compiled"], 1)
        _, counters, _ = self.run_with(self.folder)
        self.assertNotIn("cpu.kernels_compiled", counters)

    def test_two_processes_at_once(self):
        wanted, _, _ = self.run_with(None)
        for process in [self.start(self.folder), self.start(self.folder)]:
            self.assertEqual(self.finish(process)[0], wanted)

    def test_killed_at_any_moment(self):
        wanted, _, _ = self.run_with(None)
        random.seed(1)
        for _ in range(10):
            process = self.start(self.folder)
            time.sleep(random.uniform(0.005, 0.15))
            process.kill()
            process.communicate()
        self.assertEqual(self.run_with(self.folder)[0], wanted)

    def test_a_folder_open_to_others_is_refused_and_said(self):
        self.folder.mkdir()
        self.folder.chmod(0o777)
        wanted, _, _ = self.run_with(None)
        out, counters, err = self.run_with(self.folder)
        self.assertEqual(out, wanted)
        self.assertEqual(list(self.folder.iterdir()), [])
        self.assertIn(f"lazuli: XLA_PERSISTENT_CACHE_PATH: others may write to the folder {self.folder}; "
                      f"make it private: chmod 700 {self.folder}; going on without it\n", err)
        self.assertGreater(counters["cpu.kernels_compiled"], 0)


if __name__ == "__main__":
    unittest.main()
