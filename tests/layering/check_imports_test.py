"""What tools/check_imports.py must catch, each on a small package made for it."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True
import check_imports  # noqa: E402


class ImportsTest(unittest.TestCase):
    def check(self, files):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in ({"__init__": ""} | files).items():
                file = pathlib.Path(folder, "python/lazuli", f"{name}.py")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                code = check_imports.main([folder])
            return code, out.getvalue()

    def rejects(self, files, *lines):
        self.assertEqual(self.check(files), (1, "".join(f"{line}\n" for line in lines)))

    def accepts(self, files):
        self.assertEqual(self.check(files), (0, "imports: ok\n"))

    def test_siblings_and_the_extension(self):
        self.accepts({"__init__": "from lazuli._C import *\nimport lazuli.b", "a": "from lazuli import _C\nfrom lazuli._C.nn import Module",
                      "b": "from lazuli import a\nimport lazuli.a as a\nfrom lazuli.a import x\nimport numpy"})

    def test_package_that_imports_the_module(self):
        for text in ("import lazuli as lz", "from lazuli import tensor", "from . import tensor", "def f():\n  import lazuli"):
            line = text.count("\n") + 1
            self.rejects({"__init__": "import lazuli.a", "a": text}, f"python/lazuli/a.py:{line}: lazuli.a -> lazuli, which imports it")

    def test_by_way_of_others(self):
        self.rejects({"__init__": "import lazuli.nn", "nn/__init__": "from lazuli.nn.a import x", "nn/a": "from lazuli import tensor"},
                     "python/lazuli/nn/a.py:1: lazuli.nn.a -> lazuli, which imports it by way of lazuli.nn")

    def test_package_that_does_not_import_the_module(self):
        self.accepts({"__init__": "import lazuli.a", "a": "", "b/__init__": "from lazuli.b.c import x", "b/c": "import lazuli as lz"})

    def test_packages_on_the_way_to_a_module(self):
        self.rejects({"__init__": "", "a": "import lazuli.b.c", "b/__init__": "import lazuli.a", "b/c": ""},
                     "modules import each other: lazuli.a -> lazuli.b -> lazuli.a")

    def test_siblings_that_import_each_other(self):
        self.rejects({"a": "from lazuli.b import x", "b": "def f():\n  from .a import y"},
                     "modules import each other: lazuli.a -> lazuli.b -> lazuli.a")


if __name__ == "__main__":
    unittest.main()
