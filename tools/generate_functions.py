#!/usr/bin/env python3
"""Writes what derives from the rows of public functions (lazy/ops/functions/*.txt, lazy/ops/functions/*.def) and
layers (cpp_api/nn/layers.txt):

  include/lazuli/*.h        the public headers, from the templates cpp_api/include/lazuli/*.h.in
  lazy/ops/core/functions.h the declarations of the definitions, from the template beside it
  cpp_api/src/functions.cc  the public functions, each in terms of its definition
  cpp_api/src/forms.cc      methods and forms in place, in terms of the functions
  cpp_api/nn/layers.cc      the layers that are functions
  python/src/rows_*.cc      the functions and methods of Python
  python/src/layers_*.cc    the layers of Python
  python/lazuli/nn/_rows.py what Python adds to them
  docs/functions.md         the page

and what derives from cpp_api/libtorch_headers.txt:

  include/lazuli/libtorch   LibTorch's headers, each of which is torch/torch.h or an #error

    tools/generate_functions.py ROOT OUT

Files that would not change are left alone. In the folders of OUT that are named above, files that no row gives are removed;
the other folders belong to other generators. Prints what was read, for the build to watch.

docs/adding_a_function.md describes the rows. A template is the header itself with lines that stand for rows:

  @functions NAME...    the declarations of these files, by section
  @using NAMESPACE      using-declarations of the rows that list the namespace as a form
  @names                using-declarations of the functions that are in no namespace
  @methods              declarations of the methods (in the class Tensor)
  @inplace              declarations of the forms in place (likewise)
  @inplace_functions    the forms in place as functions: relu_(x)
  @out_functions        functions that write their results to tensors: add_out(out, x, y)
  @definitions          declarations of the definitions, in lazuli::lazy
  @layer NAME           a layer's comment, its options, and its class up to forward()
  @function_layers      the layers that are functions
  @torch_layers         the layers under LibTorch's names: options that are built, and holders
  @torch_losses         the losses of nn.functional as modules
  @torch_function_options  functions of layers and losses with their options
  @tensor_options       for the functions that take a dtype and a device, overloads that take LibTorch's TensorOptions
"""

import pathlib
import sys

from functions.cpp import forms, functions, layers
from functions.headers import header
from functions.libtorch import sub_header
from functions.page import page
from functions.python import layer_table, layer_units, python_index, python_unit
from functions.rows import LAYERS, ROWS, TEMPLATES, check, parse_layers, read

SUB_HEADERS = "cpp_api/libtorch_headers.txt"


def outputs(root):
    """The generated files by their paths below OUT."""
    families = read(root)
    complaints = list(check(families))
    if complaints:
        raise SystemExit("\n".join(complaints))
    sections, files = parse_layers(root / LAYERS), {}
    for source, target in TEMPLATES.items():
        for template in sorted((root / source).rglob("*.h.in")):
            path = template.relative_to(root / source).as_posix().removesuffix(".in")
            files[f"{target}/{path}"] = header(template.read_text(encoding="utf-8"), families, sections)
    for line in lines_of(root / SUB_HEADERS):
        path, _, instead = line.partition(": ")
        files[f"include/lazuli/libtorch/{path}"] = sub_header(path, instead)
    files["cpp_api/src/functions.cc"] = functions(families)
    files["cpp_api/src/forms.cc"] = forms(families)
    for family in families:
        files[f"python/src/rows_{family.name}.cc"] = python_unit(family)
    files["python/src/all_rows.cc"] = python_index(families)
    files["cpp_api/nn/layers.cc"] = layers(sections, families)
    files |= dict(layer_units(sections))
    files["python/lazuli/nn/_rows.py"] = layer_table(sections)
    files["docs/functions.md"] = page(families, sections)
    return files


def lines_of(path):
    """The lines of a table but for comments; none if it is not there."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else ()
    return [line for line in lines if line and not line.startswith("#")]


def inputs(root):
    """What a build has to watch: files, and the folders in which one may appear."""
    yield root / "tools/generate_functions.py"
    yield from sorted((root / "tools/functions").glob("*.py"))
    yield root / ROWS
    yield from sorted((root / ROWS).glob("*.txt"))
    yield root / LAYERS
    yield root / SUB_HEADERS
    yield from (root / ROWS / f"{kind}.def" for kind in ("unary", "binary", "compare"))
    for source in TEMPLATES:
        yield from sorted((root / source).rglob("*.h.in"))


def main(args):
    if len(args) != 2:
        raise SystemExit(__doc__)
    root, out = pathlib.Path(args[0]), pathlib.Path(args[1])
    files = {out / path: text for path, text in outputs(root).items()}
    for file, text in files.items():
        if file.is_file() and file.read_text(encoding="utf-8") == text:
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    for folder in {file.relative_to(out).parts[0] for file in files}:
        for file in (out / folder).rglob("*"):
            if file.is_file() and file not in files:
                file.unlink()
    print("\n".join(str(path) for path in inputs(root)))


if __name__ == "__main__":
    main(sys.argv[1:])
