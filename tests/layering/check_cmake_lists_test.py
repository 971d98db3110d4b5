"""What tools/check_cmake_lists.py must catch, each on a small tree made for it."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True
import check_cmake_lists  # noqa: E402


class CMakeListsTest(unittest.TestCase):
    def check(self, files):
        with tempfile.TemporaryDirectory() as folder:
            for path, text in ({"CMakeLists.txt": ""} | files).items():
                file = pathlib.Path(folder, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                code = check_cmake_lists.main([folder])
            return code, out.getvalue()

    def rejects(self, files, message):
        code, out = self.check(files)
        self.assertEqual(code, 1, out)
        self.assertIn(message, out)

    def accepts(self, files):
        self.assertEqual(self.check(files), (0, ""))

    def library(self, text, *files):
        return {"ir/hlo/CMakeLists.txt": f"lazuli_library(NAME ir_hlo {text})"} | {f"ir/hlo/{f}": "" for f in files}

    def test_all_listed(self):
        self.accepts(self.library("SRCS a.cc b.cc HDRS a.h DEPS z a", "a.cc", "b.cc", "a.h", "x.def"))

    def test_forgotten(self):
        self.rejects(self.library("SRCS a.cc HDRS", "a.cc", "b.cc"), "ir/hlo/b.cc: ir/hlo/CMakeLists.txt does not name")
        self.rejects(self.library("SRCS a.cc HDRS", "a.cc", "a.h"), "ir/hlo/a.h")

    def test_part_of_another_name_is_not_enough(self):
        self.rejects(self.library("SRCS ab.cc HDRS", "ab.cc", "b.cc"), "ir/hlo/b.cc")

    def test_commented_out_is_forgotten(self):
        self.rejects(self.library("SRCS\n# a.cc\nHDRS", "a.cc"), "ir/hlo/a.cc")

    def test_source_of_a_variable(self):
        text = "SRCS ${jit_srcs} HDRS)\nlist(APPEND jit_srcs no_jit/a.cc"
        self.accepts(self.library(text, "no_jit/a.cc"))

    def test_folder_without_a_list_of_its_own(self):
        self.accepts(self.library("SRCS rules/a.cc HDRS", "rules/a.cc"))
        self.rejects(self.library("SRCS a.cc HDRS", "a.cc", "rules/a.cc"), "ir/hlo/rules/a.cc")

    def test_unsorted(self):
        self.rejects(self.library("SRCS b.cc a.cc HDRS", "a.cc", "b.cc"), "SRCS is not sorted: a.cc comes too late")

    def test_file_that_does_not_exist(self):
        self.rejects(self.library("SRCS a.cc HDRS"), "names a.cc, which does not exist")

    def test_options_that_come_too_late(self):
        files, options = self.library("SRCS a.cc HDRS", "a.cc"), "set_source_files_properties(a.cc PROPERTIES COMPILE_OPTIONS -O3)"
        (path, text), *rest = files.items()
        self.accepts({path: f"{options}\n{text}", **dict(rest)})
        self.rejects({path: f"{text}\n{options}", **dict(rest)}, "the options of a.cc come after what compiles it, and have no effect")

    def test_program_named_by_its_stem(self):
        self.accepts({"examples/CMakeLists.txt": "lazuli_example(mnist_lenet)", "examples/mnist_lenet.cc": ""})
        self.rejects({"examples/CMakeLists.txt": "lazuli_example(mnist)", "examples/mnist_lenet.cc": ""}, "mnist_lenet.cc")


if __name__ == "__main__":
    unittest.main()
