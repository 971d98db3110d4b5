#!/usr/bin/env python3
"""Prints how big the project is: lines per folder, the longest files, rows of the tables.

A line counts if it holds something other than a comment or white space. A file longer than LIMIT lines is named: it is
time to split it by family.

    tools/size_report.py [ROOT]
"""

import pathlib
import re
import sys

TOPS = ["ir", "lowering", "backend", "lazy", "cpp_api", "python", "tools", "tests", "benchmarks", "examples"]
SUFFIXES = (".h", ".cc", ".def", ".py", ".sh", ".html", ".css", ".js")
LIMIT = 800


def code_lines(file):
    comment = "#" if file.suffix in (".py", ".sh") else "//"
    lines = (line.strip() for line in file.read_text(encoding="utf-8").splitlines())
    return sum(1 for line in lines if line and not line.startswith(comment))


def table_rows(file):
    """Macro invocations of a .def file: each is a row."""
    return len(re.findall(r"^[A-Z][A-Z0-9_]*\s*\(", file.read_text(encoding="utf-8"), re.MULTILINE))


def main(args):
    root = pathlib.Path(args[0] if args else pathlib.Path(__file__).parent.parent).resolve()
    files = [f for top in TOPS for f in sorted((root / top).rglob("*")) if f.suffix in SUFFIXES and f.is_file()]
    lines = {f: code_lines(f) for f in files}
    folders = {}
    for f in files:
        folder = "/".join(f.relative_to(root).parts[:-1][:2])
        folders.setdefault(folder, []).append(lines[f])

    print(f"{'folder':24}{'files':>7}{'lines':>8}{'median':>8}{'longest':>9}")
    for folder, sizes in sorted(folders.items()):
        sizes.sort()
        print(f"{folder:24}{len(sizes):7}{sum(sizes):8}{sizes[len(sizes) // 2]:8}{sizes[-1]:9}")
    print(f"{'all':24}{len(files):7}{sum(lines.values()):8}")

    print("\nrows of tables")
    for f in files:
        if f.suffix == ".def" and (rows := table_rows(f)):
            print(f"{f.relative_to(root).as_posix():40}{rows:7}")
    for f in files:
        if lines[f] > LIMIT:
            print(f"\n{f.relative_to(root)} has {lines[f]} lines; above {LIMIT} a file is split by family")


if __name__ == "__main__":
    main(sys.argv[1:])
