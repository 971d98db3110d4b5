#!/usr/bin/env python3
"""Checks that every source has a CMakeLists.txt that names it, and that lists are sorted.

A .cc or .h file must be named by the CMakeLists.txt of its own folder or, for a folder without one, of the nearest
folder above it; a name there must be a file. Options of a source are set before the library or test that has it, which would
else compile it together with others, without the options. Entries of SRCS and HDRS stand one per line, sorted. Examples and tools name
a program by the stem of its only source.

    tools/check_cmake_lists.py [ROOT]
"""

import pathlib
import re
import sys

TOPS = ["ir", "lowering", "backend", "lazy", "cpp_api", "python", "tools", "tests", "benchmarks", "examples"]
SUFFIXES = (".cc", ".h")
KEYWORDS = r"NAME|SRCS|HDRS|DEPS|PRIVATE_DEPS|LABELS|TIMEOUT|RUN_SERIAL"
LIST = re.compile(rf"\b(SRCS|HDRS)\b(.*?)(?=\b(?:{KEYWORDS})\b|\))", re.DOTALL)


def home(root, folder):
    """The nearest CMakeLists.txt at or above a folder."""
    while not (folder / "CMakeLists.txt").is_file() and folder != root:
        folder = folder.parent
    return folder / "CMakeLists.txt"


def check_listed(root):
    for top in TOPS:
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in SUFFIXES or "cmake_project" in file.parts:
                continue
            # Headers of programs belong to no file set; the public ones are installed as a folder.
            if file.suffix == ".h" and (top in ("tests", "benchmarks", "examples") or "include" in file.parts):
                continue
            if file.name == "first_program.cc":  # compiled by benchmarks/compile_time.py, to time it
                continue
            cmake = home(root, file.parent)
            text = re.sub(r"#.*", "", cmake.read_text(encoding="utf-8"))
            name = file.relative_to(cmake.parent).as_posix()
            names = [name] + ([name[:-3]] if file.suffix == ".cc" and top in ("examples", "tools", "benchmarks") else [])
            if not any(re.search(rf"(?<![\w./-]){re.escape(n)}(?![\w./-])", text) for n in names):
                yield f"{file.relative_to(root)}: {cmake.relative_to(root)} does not name it"


def check_lists(root):
    for top in TOPS:
        for cmake in sorted((root / top).rglob("CMakeLists.txt")):
            text = re.sub(r"#.*", "", cmake.read_text(encoding="utf-8"))
            for match in LIST.finditer(text):
                names = [n for n in match[2].split() if not n.startswith("${")]
                where = f"{cmake.relative_to(root)}: {match[1]}"
                if names != sorted(names):
                    yield f"{where} is not sorted: {next(b for a, b in zip(names, names[1:]) if b < a)} comes too late"
                for name in names:
                    if name.endswith(SUFFIXES + (".def",)) and not (cmake.parent / name).is_file():
                        yield f"{where} names {name}, which does not exist"


def check_options(root):
    for top in TOPS:
        for cmake in sorted((root / top).rglob("CMakeLists.txt")):
            text = re.sub(r"#.*", "", cmake.read_text(encoding="utf-8"))
            first = re.search(r"\blazuli_(library|test)\(", text)
            for match in re.finditer(r"\bset_source_files_properties\(\s*([^)]*?)\s+PROPERTIES", text):
                if first and match.start() > first.start() and any(
                        re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w./-])", text[:match.start()]) for name in match[1].split()):
                    yield f"{cmake.relative_to(root)}: the options of {match[1]} come after what compiles it, and have no effect"


def main(args):
    root = pathlib.Path(args[0] if args else pathlib.Path(__file__).parent.parent).resolve()
    complaints = [*check_listed(root), *check_lists(root), *check_options(root)]
    if complaints:
        print("\n".join(complaints))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
