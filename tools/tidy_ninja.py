#!/usr/bin/env python3
"""Writes FOLDER/tidy.ninja from FOLDER/compile_commands.json: clang-tidy as a build, so that only what changed is checked again.

    tidy_ninja.py build/lint && ninja -C build/lint -f tidy.ninja [tidy/lazy/ops/core/record.cc.ok ...]

Sources that the build compiles together (LAZULI_UNITY) are checked together, which takes a tenth of the time: most of it goes into
headers. Each has a target of its own all the same. A source is checked again when it, one that it is compiled with, a header of ours
that they include, its flags or .clang-tidy changed.
"""

import json
import os
import pathlib
import re
import shlex
import sys

RULES = """\
ninja_required_version = 1.5
rule tidy
  command = clang-tidy-19 -p . --quiet $checks $in && $list -MM -MF $out.d -MT $out && touch $out
  depfile = $out.d
  deps = gcc
  description = $source
"""


def escaped(text):
    return text.replace("$", "$$").replace(" ", "$ ").replace(":", "$:")


def sources_of(file, root):
    """The sources of ours that a compiled file is made of: itself, or those that are compiled together in it."""
    if file.name.startswith("unity_"):
        names = re.findall(r'#include "(.*)"', file.read_text())
        return [(root / name if (root / name).exists() else file.parent / name).resolve() for name in names]
    return [file] if file.is_relative_to(root) and "build" not in file.relative_to(root).parts else []


def build_of(command, root, folder, seen):
    """The build statements of one compiled file; none for one of which nothing is ours or not yet seen."""
    file = pathlib.Path(command["file"])
    sources = sources_of(file, root)
    ours = [source for source in sources if source.is_relative_to(root) and source not in seen]
    seen.update(ours)
    names = [escaped(f"tidy/{source.relative_to(root)}.ok") for source in ours]
    if not names:
        return ""
    words = shlex.split(command["command"])
    del words[words.index("-o"):words.index("-o") + 2]
    arguments = shlex.join(w for w in words if w != "-c").replace("$", "$$")
    together = sources != [file]
    target = escaped(f"tidy/{file.relative_to(folder)}.ok") if together else names[0]
    text = (f"build {target}: tidy {escaped(str(file))} | {escaped(str(root / '.clang-tidy'))}\n"
            f"  list = {arguments}\n  source = {names[0][5:-3]}{f' and {len(names) - 1} more' if together else ''}\n")
    if together:  # which includes sources on purpose
        text += "  checks = --checks=-bugprone-suspicious-include\n"
        text += "".join(f"build {name}: phony {target}\n" for name in names)
    return text


def main(folder):
    folder = pathlib.Path(folder).resolve()
    root = pathlib.Path(__file__).resolve().parent.parent
    commands = json.loads((folder / "compile_commands.json").read_text())
    seen = set()
    text = RULES + "".join(build_of(command, root, folder, seen) for command in commands)
    target = folder / "tidy.ninja"
    if not target.exists() or target.read_text() != text:
        partial = target.with_suffix(".partial")
        partial.write_text(text)
        os.replace(partial, target)


if __name__ == "__main__":
    main(sys.argv[1])
