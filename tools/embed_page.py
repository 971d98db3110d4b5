#!/usr/bin/env python3
"""Writes a page of HTML, with its style sheets and scripts in it, as a constant of C++.

    tools/embed_page.py FOLDER/graph.html OUT     writes OUT/graph.h: lazuli::pages::kGraph

`<link rel=stylesheet href=FILE>` and `<script src=FILE></script>` are replaced by what FILE holds, so the page needs no other
file; FILE is relative to the page. A header that would not change is left alone. Prints what was read, for the build to watch.

A page is text that a program fills in (ir/support/fill_page.h): {{name}} stands for what it writes there.
"""

import pathlib
import re
import sys

PART = re.compile(r"<link rel=stylesheet href=([^\s>]+)>|<script src=([^\s>]+)></script>")
HEADER = """// Written by tools/embed_page.py from {name}.
#pragma once

#include <string_view>

namespace lazuli::pages {{

inline constexpr std::string_view k{constant} = R"PAGE({text})PAGE";

}}  // namespace lazuli::pages
"""


def embedded(page):
    """The text of a page with all that it names, and the files that were read."""
    read = [page]

    def part(match):
        read.append(page.parent / (match[1] or match[2]))
        text = read[-1].read_text(encoding="utf-8")
        return f"<style>\n{text}</style>" if match[1] else f"<script>\n{text}</script>"

    return PART.sub(part, page.read_text(encoding="utf-8")), read


def main(args):
    if len(args) != 2:
        raise SystemExit(__doc__)
    page, out = pathlib.Path(args[0]), pathlib.Path(args[1])
    text, read = embedded(page)
    constant = "".join(word.capitalize() for word in page.stem.split("_"))
    header = HEADER.format(name=page.name, constant=constant, text=text)
    file = out / f"{page.stem}.h"
    if not file.is_file() or file.read_text(encoding="utf-8") != header:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(header, encoding="utf-8")
    print("\n".join(str(path.resolve()) for path in [pathlib.Path(__file__), *read]))


if __name__ == "__main__":
    main(sys.argv[1:])
