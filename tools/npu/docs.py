#!/usr/bin/env python3
"""Puts the output of commands into a page, and checks that it is current.

    <!-- $ npu-layers --topology=examples/npu/layers/gemm.csv -->
    ...
    <!-- end -->

What stands between the two lines is replaced: by the command and its output in a block; by the output itself, which is
Markdown, for npu-doc; by nothing but the text that is there for a command that writes a picture (`> docs/name.svg`).
Commands run in the root of the repository, with the tools of a build first in PATH.

    tools/npu/docs.py TOOLS PAGE           writes the page and the pictures
    tools/npu/docs.py --check TOOLS PAGE   names what differs; then exit status 1
"""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PART = re.compile(r"(<!-- \$ (.+?) -->\n)(.*?)(<!-- end -->\n)", re.DOTALL)
PICTURE = re.compile(r"^(.*) > (\S+\.svg)$")


def output(command, tools):
    """What the command prints, run in the root of the repository; its failure ends everything."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NPU_")}
    environment["PATH"] = f"{tools}:{environment['PATH']}"
    result = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=ROOT, env=environment, capture_output=True,
                            text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{command}: {result.stderr or result.returncode}")
    return result.stdout


def main(args):
    check = args[:1] == ["--check"]
    if len(args) != 2 + check:
        sys.exit(__doc__)
    tools, page = pathlib.Path(args[-2]).resolve(), pathlib.Path(args[-1])
    files = {}

    def fill(match):
        command = match[2]
        picture = PICTURE.match(command)
        if picture:
            files[ROOT / picture[2]] = output(picture[1], tools)
            return match[0]
        text = output(command, tools)
        return match[1] + (text if command.startswith("npu-doc ") else f"```text\n$ {command}\n{text}```\n") + match[4]

    files[page] = PART.sub(fill, page.read_text(encoding="utf-8"))
    stale = [path for path, text in files.items()
             if not path.is_file() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        if check:
            print(f"{path} is not what its commands print; run ./lz docs")
        else:
            path.write_text(files[path], encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
