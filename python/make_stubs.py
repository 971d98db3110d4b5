#!/usr/bin/env python3
"""Writes lazuli/_C/*.pyi from what the built extension module says of itself.

    make_stubs.py FOLDER      FOLDER holds the package lazuli, as build/PRESET/python does

Functions of tensors are written from the signatures they are bound with, the rest from pybind11's, and what the package
adds to classes from Python's. Type checkers and editors read the result; nothing here is written by hand.
"""

import inspect
import pathlib
import re
import sys
import types

HEADER = '"""Written by make_stubs.py."""\n\nfrom collections.abc import Iterable, Sequence\nfrom typing import *\n' \
         "\nimport lazuli\nimport numpy\nfrom lazuli import DType, Device, Tensor\n{imports}\n"
# pybind11's spelling of types, and ours.
SPELLING = [(r"\bhandle\b|\bobject\b", "Any"), (r"lazuli\._C\.", "lazuli."), (r"<[^<>]*>", "..."),
            (r"lazuli::", ""), (r"lazuli\.(Tensor|DType|Device)\b", r"\1"), (r"numpy\.ndarray\[[^]]*\]", "numpy.ndarray")]


def import_package(folder):
    sys.path.insert(0, str(folder))
    try:
        import numpy  # noqa: F401
    except ImportError:  # only used when tensors are made, which nobody does here
        sys.modules["numpy"] = types.ModuleType("numpy")
    import lazuli
    return lazuli._C


def docstring(text, indent):
    lines = [line.strip() for line in (text or "").strip().splitlines()]
    if not lines or not lines[0]:
        return f"{indent}..."
    text = "\n".join([lines[0]] + [indent + line if line else "" for line in lines[1:]]).replace("\\", "\\\\")
    return f'{indent}"""{text}"""\n{indent}...'


def spelled(signature):
    for pattern, replacement in SPELLING:
        signature = re.sub(pattern, replacement, signature)
    return signature


def pybind_signatures(doc):
    """(signature, documentation) of each overload in a docstring of pybind11's."""
    if "Overloaded function." in doc:
        parts = re.split(r"\n\d+\. ", doc)[1:]
    else:
        parts = [doc]
    for part in parts:
        head, _, rest = part.partition("\n")
        yield spelled(head), rest


def function(name, value, indent, defined):
    if name in defined and not inspect.isfunction(value):  # which would take its place
        signatures = []
        for arguments, gathered, result, doc in defined[name]:
            signatures += [(arguments, result, doc)] + ([(gathered, result, doc)] if gathered else [])
            if arguments.startswith("(x: Tensor, dims: "):  # PyTorch's name, which is taken, too
                signatures.append((arguments.replace("dims: ", "dim: ", 1), result, doc))
        for signature, result, doc in signatures:
            if indent:
                signature = re.sub(r"^\(x: [^,)]*", "(self", signature)
            mark = f"{indent}@overload\n" if len(signatures) > 1 else ""
            yield f"{mark}{indent}def {name}{signature} -> {result}:\n{docstring(doc, indent + '    ')}\n"
    elif inspect.isfunction(value):
        signature = str(inspect.signature(value)) if "<" not in str(inspect.signature(value)) else "(self, *args, **kwargs)"
        yield f"{indent}def {name}{signature}:\n{docstring(value.__doc__, indent + '    ')}\n"
    elif "(" in (value.__doc__ or "").partition("\n")[0] and "->" in value.__doc__:
        overloads = list(pybind_signatures(value.__doc__))
        for signature, doc in overloads:
            mark = f"{indent}@overload\n" if len(overloads) > 1 else ""
            yield f"{mark}{indent}def {signature}:\n{docstring(doc, indent + '    ')}\n"


def class_text(name, value, defined):
    bases = ", ".join(b.__name__ for b in value.__bases__ if b.__module__.startswith("lazuli"))
    lines = [f"class {name}({bases}):" if bases else f"class {name}:"]
    doc = docstring(value.__doc__, "    ")
    lines.append(doc.removesuffix("\n    ...") if doc.endswith("...") and doc.strip() != "..." else doc)
    if hasattr(value, "__init_signature__"):
        signature = value.__init_signature__.replace("(", "(self, ", 1).replace("(self, )", "(self)")
        lines.append(f"    def __init__{signature} -> None: ...\n")
    for member, attribute in vars(value).items():
        if member in ("__doc__", "__module__", "__init_signature__", "__array_ufunc__", "__new__"):
            continue
        if member in ("__init__", "_made_of") and hasattr(value, "__init_signature__"):
            continue
        if isinstance(attribute, property):
            getter = getattr(attribute.fget, "__doc__", None) or ""
            result = spelled(getter.partition("\n")[0].rpartition("-> ")[2]) if "->" in getter else "Any"
            lines.append(f"    @property\n    def {member}(self) -> {result}:\n{docstring(attribute.__doc__, '        ')}\n")
            if attribute.fset:
                lines.append(f"    @{member}.setter\n    def {member}(self, value: Any) -> None: ...\n")
        elif isinstance(attribute, staticmethod):
            for text in function(member, attribute.__func__, "    ", defined):
                lines.append(f"    @staticmethod\n{text}")
        elif callable(attribute):
            lines += function(member, attribute, "    ", defined)
    if name == "Tensor":
        lines += [f"    def __{op}__(self, other: Tensor | float | int | bool) -> Tensor: ..."
                  + ("  # type: ignore[override]" if op in ("eq", "ne") else "") for op in OPERATORS]
        lines += [f"    def __{op}__(self) -> {result}: ..." for op, result in CONVERSIONS.items()]
        lines.append("    def __getitem__(self, index: Any) -> Tensor: ...")
        lines.append("    def __setitem__(self, index: Any, value: Tensor | float | int | bool) -> None: ...\n")
    return "\n".join(lines) + "\n"


# The slots of C that Tensor fills, which carry no signatures.
BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "matmul", "pow", "and", "or", "xor"]
OPERATORS = BINARY + [f"r{op}" for op in BINARY] + [f"i{op}" for op in BINARY if op != "matmul"] + \
    ["eq", "ne", "lt", "le", "gt", "ge"]
CONVERSIONS = {"neg": "Tensor", "abs": "Tensor", "invert": "Tensor", "float": "float", "int": "int", "bool": "bool",
               "index": "int", "len": "int", "hash": "int"}


def inner_name(name):
    """'nn.functional' of 'lazuli._C.nn.functional'; '' for the package itself."""
    return name.removeprefix("lazuli").removeprefix("._C").removeprefix(".")


def by_name(definitions):
    """The overloads of each name: those that were defined last, if a name was defined again."""
    found = {}
    for d in definitions:
        found.setdefault(d[2], []).append(d[3:])
    return found


def write(module, path, definitions):
    name = inner_name(module.__name__)
    functions = by_name(d for d in definitions if not d[1] and inner_name(d[0]) == name)
    submodules, text = [], []
    for member, value in vars(module).items():
        if member.startswith("__"):
            continue
        if inspect.ismodule(value):
            submodules.append((member, value))
        elif inspect.isclass(value):
            methods = by_name(d for d in definitions if d[1] and d[0] == member)
            text.append(class_text(member, value, methods))
        elif callable(value):
            text += function(member, value, "", functions)
        else:
            text.append(f"{member}: {type(value).__name__}\n")
    imports = "".join(f"from lazuli._C import {n}\n" for n, _ in submodules) if not name else ""
    header = HEADER.format(imports=imports)
    if not name:
        header = header.replace("from lazuli import DType, Device, Tensor\n", "")
    path.parent.mkdir(parents=True, exist_ok=True)
    body = "\n".join(text)
    if not name:  # where bool is a dtype, and Tensor has float() and int()
        lines = [re.sub(r"(?<=[:>|\[] |.\[)(bool|float|int)\b", r"builtins.\1", line)
                 if line.lstrip().startswith("def ") else line for line in body.split("\n")]
        body = "\n".join(lines)
        header = header.replace("\nimport lazuli\n", "\nimport builtins\nimport lazuli\n")
    path.write_text(header + "\n" + body, encoding="utf-8")
    for member, value in submodules:
        inner = any(inspect.ismodule(v) for v in vars(value).values())
        write(value, path.parent / (f"{member}/__init__.pyi" if inner else f"{member}.pyi"), definitions)


def main(folder):
    folder = pathlib.Path(folder).resolve()
    core = import_package(folder)
    write(core, folder / "lazuli/_C/__init__.pyi", core._definitions())


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
