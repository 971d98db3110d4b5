#!/usr/bin/env python3
"""tools/embed_page.py: what a page and the files that it names become, and when the header is written.

usage: embed_page_test.py SCRIPT
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = sys.argv.pop(1)


class EmbedPageTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "pages").mkdir()
        self.page = self.root / "pages" / "one_page.html"
        self.page.write_text("<head><link rel=stylesheet href=../all.css></head>{{rows}}<script src=one.js></script>\n", encoding="utf-8")
        (self.root / "all.css").write_text("p{margin:0}\n", encoding="utf-8")
        (self.root / "pages" / "one.js").write_text("f('\\n<link rel=stylesheet href=no.css>');\n", encoding="utf-8")

    def run_on(self, page):
        return subprocess.run([sys.executable, "-B", SCRIPT, page, self.root / "out"], capture_output=True, text=True, check=False)

    def test_the_constant_is_the_page_with_its_style_and_script(self):
        result = self.run_on(self.page)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual((self.root / "out" / "one_page.h").read_text(encoding="utf-8"), """// Written by tools/embed_page.py from one_page.html.
#pragma once

#include <string_view>

namespace lazuli::pages {

inline constexpr std::string_view kOnePage = R"PAGE(<head><style>
p{margin:0}
</style></head>{{rows}}<script>
f('\\n<link rel=stylesheet href=no.css>');
</script>
)PAGE";

}  // namespace lazuli::pages
""")
        self.assertEqual([pathlib.Path(line).name for line in result.stdout.splitlines()],
                         ["embed_page.py", "one_page.html", "all.css", "one.js"])

    def test_a_header_is_written_when_it_changes(self):
        self.run_on(self.page)
        header = self.root / "out" / "one_page.h"
        before = header.stat().st_mtime_ns
        self.run_on(self.page)
        self.assertEqual(header.stat().st_mtime_ns, before)
        (self.root / "all.css").write_text("p{margin:1px}\n", encoding="utf-8")
        self.run_on(self.page)
        self.assertIn("p{margin:1px}", header.read_text(encoding="utf-8"))

    def test_a_file_that_is_not_there_is_an_error(self):
        (self.root / "all.css").unlink()
        result = self.run_on(self.page)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("all.css", result.stderr)


if __name__ == "__main__":
    unittest.main()
