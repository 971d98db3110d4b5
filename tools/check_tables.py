#!/usr/bin/env python3
"""Checks that every flag and every metric is used: a row that nothing reads is a promise not kept.

usage: check_tables.py [ROOT]
"""
import pathlib
import re
import sys

# (table, row, what a use of the row's name looks like)
TABLES = [
    ("flags.def", r"^LAZULI_FLAG\(\w+, (\w+),", r"flags\(\)\.{}\(\)"),
    ("metrics.def", r"^LAZULI_COUNTER\((\w+),", r"Counter::{}\b"),
    ("metrics.def", r"^LAZULI_TIMER\((\w+),", r"Timer::{}\b"),
]
FOLDERS = ["ir", "lowering", "backend", "lazy", "cpp_api", "python", "tools"]


def main() -> int:
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent
    code = "\n".join(
        path.read_text()
        for folder in FOLDERS
        for path in sorted((root / folder).rglob("*"))
        if path.suffix in (".cc", ".h"))
    unused = [
        f"{path.relative_to(root)}: nothing uses {name}"
        for table, row, use in TABLES
        for folder in FOLDERS
        for path in sorted((root / folder).rglob(table))
        for name in re.findall(row, path.read_text(), re.MULTILINE)
        if not re.search(use.format(name), code)
    ]
    print("\n".join(unused) or "tables: ok")
    return 1 if unused else 0


if __name__ == "__main__":
    sys.exit(main())
