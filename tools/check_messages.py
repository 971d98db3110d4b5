#!/usr/bin/env python3
"""Finds words in messages that a reader has to read twice: what a string says is plain English.

usage: check_messages.py [FILE...]     without files: all C++ and Python files but the tests

Each line that is printed is a mistake: "x is no number" is "x is not a number", "device 1 stands twice in the group" is "device 1 is in
the group twice", "a buffer is none of the NPU's" is "a buffer is not on the NPU".
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
HABITS = [
    (re.compile(r"\b(?<!there )(?<!There )(is|was|are|were) no (?!longer\b|more\b)\w+"), "says 'is no': write 'is not a'"),
    (re.compile(r"\bstands? (there )?twice\b"), "says 'stands twice': write 'is given twice'"),
    (re.compile(r"\b(?<!there )(?<!There )(is|are) none\b"), "says 'is none': write what it is not"),
]
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def mistakes(text):
    """(line number, what is wrong) for each string of the text that has a habit; comments and includes are not messages."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith(("//", "#")):
            continue
        for string in STRING.findall(line):
            for pattern, wrong in HABITS:
                if pattern.search(string):
                    yield number, wrong


def main(files):
    if not files:
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.h", "*.cc", "*.py"], cwd=ROOT, check=True,
                                capture_output=True, text=True).stdout.split()
        files = [ROOT / name for name in listed if not name.startswith("tests/") and "check_messages" not in name]
    found = [f"{file}:{number}: {wrong}" for file in map(pathlib.Path, files) if file.exists()
             for number, wrong in mistakes(file.read_text(errors="replace"))]
    print("\n".join(found) or "messages: ok")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
