"""What tools/check_layering.py must catch, each on a small tree made for it."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True
import check_layering  # noqa: E402


class TableTest(unittest.TestCase):
    def complaints(self, layers):
        return "\n".join(check_layering.check_table(layers))

    def test_the_real_table_is_sound(self):
        self.assertEqual(self.complaints(check_layering.LAYERS), "")

    def test_cycle(self):
        self.assertIn("cycle", self.complaints({"ir/a": ["ir/b"], "ir/b": ["ir/a"]}))

    def test_unknown_folder(self):
        self.assertIn("no row", self.complaints({"ir/a": ["ir/b"]}))

    def test_dependency_on_a_later_stage(self):
        self.assertIn("later stage", self.complaints({"ir/a": ["lazy/b"], "lazy/b": []}))


class TreeTest(unittest.TestCase):
    def check(self, files):
        """Exit code and output for a tree of {path: text}."""
        with tempfile.TemporaryDirectory() as folder:
            for path, text in files.items():
                file = pathlib.Path(folder, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                code = check_layering.main([folder])
            return code, out.getvalue()

    def rejects(self, files, message):
        code, out = self.check(files)
        self.assertEqual(code, 1, out)
        self.assertIn(message, out)

    def accepts(self, files):
        code, out = self.check(files)
        self.assertEqual((code, out), (0, "layering: ok\n"))

    def test_transitive_include_is_allowed(self):
        self.accepts({"ir/support/a.h": "", "ir/hlo/b.h": '#include "ir/support/a.h"\n'})

    def test_include_of_a_later_folder(self):
        self.rejects({"ir/hlo/b.h": "", "ir/support/a.h": '\n#include "ir/hlo/b.h"\n'},
                     "ir/support/a.h:2: ir/support may not include ir/hlo")

    def test_include_between_siblings(self):
        self.rejects({"ir/graph/a.h": "", "ir/hlo/b.cc": '#include "ir/graph/a.h"\n'}, "may not include ir/graph")

    def test_def_files_count(self):
        self.rejects({"lazy/ops/x.def": "", "ir/hlo/b.def": '#include "lazy/ops/x.def"\n'}, "may not include lazy/ops")

    def test_nested_folder_with_its_own_row(self):
        self.rejects({"backend/cpu/a.h": "", "backend/cpu/runtime/b.cc": '#include "backend/cpu/a.h"\n'},
                     "backend/cpu/runtime may not include backend/cpu")

    def test_library_includes_a_test(self):
        self.rejects({"tests/support/t.h": "", "ir/hlo/b.cc": '#include "tests/support/t.h"\n'},
                     "ir/hlo may not include tests")

    def test_tests_include_anything(self):
        self.accepts({"lazy/ops/a.h": "", "tests/ir/b.cc": '#include "lazy/ops/a.h"\n#include "llvm/x.h"\n'})

    def test_missing_file(self):
        self.rejects({"ir/hlo/b.cc": '#include "ir/hlo/gone.h"\n'}, "no file ir/hlo/gone.h")

    def test_include_without_a_path(self):
        self.rejects({"ir/hlo/a.h": "", "ir/hlo/b.cc": '#include "a.h"\n'}, "include a.h by its path")

    def test_llvm_outside_codegen(self):
        self.rejects({"backend/cpu/runtime/b.cc": "#include <llvm/IR/Module.h>\n"}, "LLVM headers stay")
        self.accepts({"backend/cpu/codegen/b.cc": '#include "llvm/IR/Module.h"\n'})

    def test_public_header(self):
        own = {"cpp_api/include/lazuli/b.h": ""}
        self.accepts(own | {"cpp_api/include/lazuli/a.h": '#include <vector>\n#include "lazuli/b.h"\n'})
        self.rejects({"cpp_api/include/lazuli/a.h": '#include "absl/status/status.h"\n'}, "public headers")
        self.rejects({"cpp_api/include/lazuli/a.h": '#include "ir/x.h"\n', "ir/x.h": ""}, "may not include")

    def test_nn_is_written_against_the_public_api(self):
        self.rejects({"lazy/tensor/t.h": "", "cpp_api/nn/a.cc": '#include "lazy/tensor/t.h"\n'}, "may not include")
        self.accepts({"cpp_api/include/lazuli/t.h": "", "cpp_api/nn/a.cc": "#include <lazuli/t.h>\n"})

    def test_cmake_row(self):
        types = {"ir/types/CMakeLists.txt": "", "ir/graph/CMakeLists.txt": "lazuli::ir_types"}
        self.accepts(types | {"ir/hlo/CMakeLists.txt": "DEPS lazuli::ir_types # lazuli::ir_graph\n"})
        self.rejects(types | {"ir/hlo/CMakeLists.txt": "DEPS\n"}, "does not link ir/types")
        self.rejects(types | {"ir/hlo/CMakeLists.txt": "DEPS lazuli::ir_types lazuli::ir_graph\n"}, "links ir/graph")


if __name__ == "__main__":
    unittest.main()
