#!/usr/bin/env python3
"""Programs and kernels kept on disk: later processes compile nothing, and no state of the folder changes a result.

usage: persistent_cache_test.py PROGRAM   (one that computes the same in every run)
"""
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

program = sys.argv.pop()


class PersistentCacheTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        """Runs copies of the program and its library: kernels belong to one build, and a link in the meantime makes another."""
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.program = shutil.copy(program, temporary.name)
        listed = subprocess.run(["ldd", program], check=True, text=True, stdout=subprocess.PIPE).stdout
        for library in re.findall(r"liblazuli\S* => (\S+)", listed):
            shutil.copy(library, temporary.name)
        cls.libraries = temporary.name

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name) / "kernels"

    def start(self, folder=None, before=None):
        # All kernels are compiled, as they are with a folder.
        environment = dict(os.environ, LAZULI_DEBUG="1", LD_LIBRARY_PATH=self.libraries, LAZULI_INTERPRET_OPS="0")
        environment.pop("XLA_PERSISTENT_CACHE_PATH", None)
        if folder:
            environment["XLA_PERSISTENT_CACHE_PATH"] = str(folder)
        return subprocess.Popen([self.program], env=environment, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, preexec_fn=before)

    def finish(self, process):
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        counters = {name: int(value) for name, value in re.findall(r"Counter: (\S+)\n  Value: (\d+)", err)}
        return out, counters, err

    def run_with(self, folder, before=None):
        return self.finish(self.start(folder, before))

    def test_the_second_process_compiles_nothing(self):
        wanted, counters, _ = self.run_with(None)
        compiled = counters["cpu.kernels_compiled"]
        self.assertGreater(compiled, 0)
        self.assertNotIn("PersistentCacheMiss", counters)

        out, counters, _ = self.run_with(self.folder)
        self.assertEqual(out, wanted)
        self.assertEqual(counters["PersistentCacheMiss"], compiled)
        programs = counters["PersistentProgramMiss"]
        self.assertEqual((len(self.entries(True)), len(self.entries(False))), (programs, compiled))

        out, counters, _ = self.run_with(self.folder)
        self.assertEqual(out, wanted)
        self.assertEqual(counters["PersistentProgramHit"], programs)
        for name in ("PersistentProgramMiss", "PersistentCacheHit", "PersistentCacheMiss", "cpu.kernels_compiled"):
            self.assertNotIn(name, counters)

    def entries(self, of_programs):
        """The files of whole programs, or those of kernels."""
        return sorted(e for e in self.folder.iterdir() if (b"lazuli program\n" in e.read_bytes()) == of_programs)

    def test_a_program_that_is_lost_is_made_of_its_kernels(self):
        wanted, counters, _ = self.run_with(self.folder)
        compiled = counters["cpu.kernels_compiled"]
        for entry in self.entries(True):
            entry.unlink()
        out, counters, _ = self.run_with(self.folder)
        self.assertEqual(out, wanted)
        self.assertEqual(counters["PersistentCacheHit"], compiled)
        self.assertNotIn("cpu.kernels_compiled", counters)

    def test_a_damaged_entry_is_compiled_again(self):
        wanted, _, _ = self.run_with(self.folder)
        for entry in (*self.entries(True), self.entries(False)[0]):
            entry.write_bytes(entry.read_bytes()[:-1] + b"?")
        out, counters, _ = self.run_with(self.folder)
        self.assertEqual(out, wanted)
        self.assertEqual(counters["cpu.kernels_compiled"], 1)
        _, counters, _ = self.run_with(self.folder)
        self.assertNotIn("cpu.kernels_compiled", counters)

    def test_a_flipped_bit_anywhere_is_found(self):
        wanted, counters, _ = self.run_with(self.folder)
        compiled = counters["cpu.kernels_compiled"]
        random.seed(2)
        for _ in range(5):
            for entry in self.folder.iterdir():
                content = bytearray(entry.read_bytes())
                content[random.randrange(len(content))] ^= 1 << random.randrange(8)
                entry.write_bytes(content)
            out, counters, _ = self.run_with(self.folder)
            self.assertEqual(out, wanted)
            self.assertEqual(counters["cpu.kernels_compiled"], compiled)

    def expect_no_more_than_a_warning(self, folder, before=None):
        wanted, _, _ = self.run_with(None)
        for _ in range(2):
            out, counters, err = self.run_with(folder, before)
            self.assertEqual(out, wanted)
            self.assertGreater(counters["cpu.kernels_compiled"], 0)
            self.assertIn("lazuli: XLA_PERSISTENT_CACHE_PATH: ", err)
            self.assertIn("going on without it\n", err)

    def test_a_write_that_ends_early(self):
        def limit_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # write() then says EFBIG
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

        self.expect_no_more_than_a_warning(self.folder, limit_files)
        self.assertEqual(self.run_with(self.folder)[0], self.run_with(None)[0])

    def test_a_full_disk(self):
        self.folder.mkdir(mode=0o700)
        options = ["-t", "tmpfs", "-o", "size=16k,mode=0700", "tmpfs", str(self.folder)]
        if os.geteuid() != 0 or subprocess.run(["mount", *options], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("needs the right to mount a small file system")
        self.addCleanup(subprocess.run, ["umount", str(self.folder)], check=True)
        self.expect_no_more_than_a_warning(self.folder)

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
