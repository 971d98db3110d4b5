"""Text of sources: names, strings, lines of 100 columns."""

WIDTH = 100
NOTE = "// Written by tools/generate_functions.py from the rows of {source}.\n"


def pascal(name):
    return "".join(part.capitalize() for part in name.split("_"))


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def wrapped(head, parts, tail, indent=""):
    """head + the parts with commas + tail, broken as clang-format does it: below the opening bracket."""
    column = len(indent) + len(head)
    lines, line = [], indent + head
    for i, part in enumerate(parts):
        text = part + ("," if i + 1 < len(parts) else tail)
        space = "" if line.endswith("(") else " "
        if len(line) + len(space) + len(text) > WIDTH and line.strip() and i > 0:
            lines.append(line)
            line, space = " " * column, ""
        line += space + text
    if not parts:
        line += tail
    return "\n".join([*lines, line])
