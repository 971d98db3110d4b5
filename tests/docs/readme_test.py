#!/usr/bin/env python3
"""README.md keeps its promises: its program compiles and trains, its words, paths and links exist.

usage: readme_test.py SOURCE_DIR GENERATED_DIR COMPILER LIBRARY DIGITS   (DIGITS: a folder with files in MNIST's format)
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE, GENERATED, COMPILER = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
LIBRARY, DIGITS = pathlib.Path(sys.argv[4]), sys.argv[5]
del sys.argv[1:]
README = (SOURCE / "README.md").read_text()


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


class ReadmeTest(unittest.TestCase):
    def test_its_program_compiles_and_trains(self):
        programs = [block for block in blocks("cpp") if "int main" in block]
        self.assertEqual(len(programs), 1)
        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder)
            (work / "data").mkdir()
            (work / "data" / "mnist").symlink_to(DIGITS)
            (work / "train.cc").write_text(programs[0])
            command = [COMPILER, "-std=c++20", "-Wall", "-Wextra", "-Werror", "train.cc", "-o", "train",
                       f"-I{SOURCE}/cpp_api/include", f"-I{GENERATED}/include", LIBRARY, f"-Wl,-rpath,{LIBRARY.parent}"]
            for step in (command, ["./train"]):
                result = subprocess.run(step, cwd=work, capture_output=True, text=True, check=False)
                self.assertEqual(result.returncode, 0, result.stderr)

    def test_its_words_are_words_of_lz(self):
        known = subprocess.run([SOURCE / "lz", "help"], capture_output=True, text=True, check=True).stdout
        used = set(re.findall(r"\./lz ([a-z]+)(?: (--[a-z]+))?", README))
        self.assertIn(("demo", ""), used)
        for word, option in used:
            line = re.search(rf"(?m)^  {word}\b.*$", known)
            self.assertTrue(line, f"lz has no word {word}")
            self.assertIn(option, line[0])

    def test_its_links_lead_somewhere(self):
        links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]
        self.assertGreater(len(links), 3)
        for link in links:
            self.assertTrue((SOURCE / link).exists(), link)

    def test_its_folders_are_there(self):
        rows = [row for row in README.splitlines() if re.match(r"\| (`[\w-]+/`(, )?)+ \|", row)]
        self.assertGreater(len(rows), 5)
        for row in rows:
            for folder in re.findall(r"`([\w-]+)/`", row.split("|")[1]):
                self.assertTrue((SOURCE / folder).is_dir(), folder)


if __name__ == "__main__":
    unittest.main()
