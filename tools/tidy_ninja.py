#!/usr/bin/env python3
"""Writes FOLDER/tidy.ninja from FOLDER/compile_commands.json: clang-tidy as a build, so that only what changed is checked again.

    tidy_ninja.py build/lint && ninja -C build/lint -f tidy.ninja [tidy/lazy/ops/record.cc.ok ...]

A source is checked again when it, a header of ours that it includes, its flags or .clang-tidy changed.
"""

import json
import os
import pathlib
import shlex
import sys

RULES = """\
ninja_required_version = 1.5
rule tidy
  command = clang-tidy-19 -p . --quiet $in && $list -MM -MF $out.d -MT $out && touch $out
  depfile = $out.d
  deps = gcc
  description = $source
"""


def escaped(text):
    return text.replace("$", "$$").replace(" ", "$ ").replace(":", "$:")


def build_of(command, root):
    """The build statement of one source, or None for one that is not ours."""
    source = pathlib.Path(command["file"])
    if not source.is_relative_to(root) or "build" in source.relative_to(root).parts:
        return None
    words = shlex.split(command["command"])
    del words[words.index("-o"):words.index("-o") + 2]
    name = source.relative_to(root)
    return (f"build {escaped(f'tidy/{name}.ok')}: tidy {escaped(str(source))} | {escaped(str(root / '.clang-tidy'))}\n"
            f"  list = {shlex.join(w for w in words if w != '-c').replace('$', '$$')}\n  source = {name}\n")


def main(folder):
    folder = pathlib.Path(folder).resolve()
    root = pathlib.Path(__file__).resolve().parent.parent
    commands = json.loads((folder / "compile_commands.json").read_text())
    builds = {command["file"]: build_of(command, root) for command in commands}  # a source of two targets: once
    text = RULES + "".join(build for build in builds.values() if build)
    target = folder / "tidy.ninja"
    if not target.exists() or target.read_text() != text:
        partial = target.with_suffix(".partial")
        partial.write_text(text)
        os.replace(partial, target)


if __name__ == "__main__":
    main(sys.argv[1])
