#!/usr/bin/env python3
"""Checks that the public functions and the rows they are bound and documented from are the same.

Every function of tensors that lazuli/ops.h declares, or lazuli/nn/{functional,init,utils}.h, has a row in
lazy/ops/*.def, with the same parameters and defaults, and every row is declared. Every row that has a form in place is a
method of lazuli/tensor.h, with the same parameters but x.

    tools/check_functions.py [ROOT]
"""

import pathlib
import re
import sys

HEADERS = {"LAZULI_COMPOSITE": "cpp_api/include/lazuli/ops.h",
           "LAZULI_FUNCTIONAL": "cpp_api/include/lazuli/nn/functional.h",
           "LAZULI_INIT": "cpp_api/include/lazuli/nn/init.h",
           "LAZULI_UTILS": "cpp_api/include/lazuli/nn/utils.h"}
ELEMENTWISE = {"unary.def": "x", "binary.def": "x, y", "compare.def": "x, y"}
# Not rows: `pow` of a number is the overload of pow that the row's Python form takes, too.
OVERLOADS = {("pow", "x, exponent")}
TENSOR = "cpp_api/include/lazuli/tensor.h"
# Of what no function gives, and add_ and sub_ with a factor.
METHODS_WITHOUT_ROWS = {"copy_", "fill_", "zero_", "add_", "sub_"}
RESULT = r"(?:Tensor|std::pair<Tensor, Tensor>|std::vector<Tensor>)"
IN_PLACE = r"(?:void|double|Tensor)"  # what functions of the last two headers return


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def split(text):
    """The parts between commas that stand outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += c in "<({["
        depth -= c in ">)}]"
        if c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [part.strip() for part in parts + [text[start:]] if part.strip()]


def parameter(declared):
    """'const Dims& dims = {}' -> 'dims = {}'."""
    head, equals, default = declared.partition("=")
    return head.split()[-1].lstrip("&*") + (f" = {default.strip().replace('std::', '')}" if equals else "")


def declared(root, header):
    """(name, parameters) of each function of tensors; the caller's line, which every one takes, is left out."""
    text = without_comments((root / header).read_text(encoding="utf-8"))
    result = IN_PLACE if header.endswith(("init.h", "utils.h")) else RESULT
    for match in re.finditer(rf"LAZULI_API\s+{result}\s+(\w+)\(((?:[^()]|\([^()]*\))*)\);", text):
        parameters = [p for p in split(match[2]) if p != "LAZULI_LOC" and "SourceLocation" not in p]
        yield match[1], ", ".join(parameter(p) for p in parameters)


def composites(root, kind):
    text = without_comments((root / "lazy/ops/composite.def").read_text(encoding="utf-8"))
    for match in re.finditer(rf"^{kind}\((\w+), \((.*?)\), ", text, re.MULTILINE):
        yield match[1], match[2]


def rows(root, kind):
    yield from composites(root, kind)
    if kind != "LAZULI_COMPOSITE":
        return
    yield from composites(root, "LAZULI_INPLACE")
    yield from elementwise(root, ELEMENTWISE)


def elementwise(root, files):
    folder = root / "lazy/ops"
    for file, parameters in files.items():
        text = without_comments((folder / file).read_text(encoding="utf-8"))
        for match in re.finditer(r"^LAZULI_\w+\(\w+, \w+, (\w+),", text, re.MULTILINE):
            yield match[1], parameters


def declared_in_place(root):
    """(name, parameters) of the methods whose names end in _."""
    text = without_comments((root / TENSOR).read_text(encoding="utf-8"))
    for match in re.finditer(r"^  Tensor& (\w+_)\(((?:[^()]|\([^()]*\))*)\);", text, re.MULTILINE):
        yield match[1], ", ".join(parameter(p) for p in split(match[2]) if p != "LAZULI_LOC")


def in_place_rows(root):
    """What those of the rows must be: x is the tensor itself."""
    table = list(composites(root, "LAZULI_INPLACE"))
    table += elementwise(root, {file: p for file, p in ELEMENTWISE.items() if file != "compare.def"})
    for name, parameters in table:
        yield name + "_", parameters.removeprefix("x").removeprefix(", ")


def check(root):
    for kind, header in HEADERS.items():
        functions, table = set(declared(root, header)) - OVERLOADS, set(rows(root, kind))
        for name, parameters in sorted(functions - table):
            yield f"{header}: {name}({parameters}) has no such row in lazy/ops/*.def ({kind}(...))"
        for name, parameters in sorted(table - functions):
            yield f"lazy/ops/*.def: {header} does not declare {name}({parameters})"
    methods, table = set(declared_in_place(root)), set(in_place_rows(root))
    for name, parameters in sorted(table - methods):
        yield f"{TENSOR}: the row of {name.rstrip('_')} wants a method {name}({parameters})"
    for name, parameters in sorted(methods - table):
        if name not in METHODS_WITHOUT_ROWS:
            yield f"{TENSOR}: {name}({parameters}) has no such row in lazy/ops/*.def that has a form in place"


def main(args):
    root = pathlib.Path(args[0]) if args else pathlib.Path(__file__).resolve().parent.parent
    complaints = list(check(root))
    print("\n".join(complaints) or "functions: ok")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
