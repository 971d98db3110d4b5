"""The rows in Python: what loads their arguments and calls them."""

from __future__ import annotations

import dataclasses

from functions.rows import ENUMS, LAYERS, Parameter, ROWS, cpp_default, torch_name, type_of
from functions.text import NOTE, pascal, quoted


def python_value(row, p):
    value = type_of(p.type).value
    if value == "Operand" and ("tensors" in row.settings or ("first_tensor" in row.settings and p is row.parameters[0])):
        value = "Tensor"  # which no number stands for
    if value == "Dims" and "rows" in row.settings:
        value = "DimsRow"
    if value == "Dims" and "none" in row.settings and p.default == "()":
        value = "DimsOrNone"
    home = ENUMS.get(p.type, row.namespace if p.type.endswith("Options") else "")
    return "::".join([*home.split("."), value]) if home else value


def python_parameters(row, in_place):
    """What Python's function takes besides, as PyTorch's: what makes a leaf may let it want a gradient, and an activation may
    be written to its operand."""
    if in_place or row.only_method:
        return ()
    if row.result == "Tensor" and any(p.type.startswith("Device") for p in row.parameters):
        return (Parameter("bool", "requires_grad", "False"),)
    if {"inplace", "nn.functional"} <= row.forms:
        return (Parameter("bool", "inplace", "False"),)
    return ()


def slot_of(row, i):
    """Where argument i comes, behind the fields of options before it."""
    before = [p for p in row.parameters[:i] if p.type.endswith("Options")]
    return " + ".join([str(i - len(before)), *(f"kFieldCount<{python_value(row, p)}>" for p in before)])


def python_row(row, in_place=False, number=0):
    """What Python calls for a row, and its FunctionRow, with the number of the overload."""
    if in_place:  # of a tensor, whatever the function takes
        row = dataclasses.replace(row, parameters=(Parameter("Tensor", "x"), *row.parameters[1:]))
    name, id_ = row.name + ("_" if in_place else ""), row_id(row, in_place, number)
    body = [f"  Given<{python_value(row, p)}> {p.name}(signature, slots, {slot_of(row, i)});" for i, p in enumerate(row.parameters)]
    added = python_parameters(row, in_place)
    body += [f"  Given<bool> {p.name}(signature, slots, {i});" for i, p in enumerate(added, len(row.parameters))]
    body.append("  const Caller caller;")
    arguments = [f"{p.name}.get()" for p in row.parameters]
    line = ["SourceLocation::current()"] if row.takes_line else []
    if any(p.name == "inplace" for p in added):
        body += ["  if (inplace.get()) {", "    Tensor self = x.get();", f"    self.{name}_({', '.join(arguments[1:] + line)});",
                 "    return Py_NewRef(slots[0]);", "  }"]
    gives_x = in_place or row.only_method or (row.result == "None" and row.parameters[0].type == "Tensor!")
    if in_place or row.only_method:
        body.append("  Tensor self = x.get();")
        call = f"self.{name}({', '.join(arguments[1:] + line)})"
    else:
        call = f"{row.cpp_name}({', '.join(arguments + line)})"
    if gives_x:
        body += [f"  {call};", "  return Py_NewRef(slots[0]);"]
    elif row.result == "None":
        body += [f"  {call};", "  Py_RETURN_NONE;"]
    elif any(p.name == "requires_grad" for p in added):
        body += [f"  Tensor made = {call};", "  if (requires_grad.get()) made.set_requires_grad(true);",
                 "  return ToPython(std::move(made)).release().ptr();"]
    elif row.result.startswith("(") and "Tensor?" not in row.result:
        fields = ", ".join(quoted(part.split()[1]) for part in row.result[1:-1].split(", "))
        body += [f"  static PyTypeObject* const type = NamedTuple({quoted(row.name)}, {{{fields}}});",
                 f"  return ToNamedTuple(type, {call});"]
    else:
        convert = "ThoseDefined" if "Tensor?" in row.result else "ToPython"
        body.append(f"  return {convert}({call}).release().ptr();")
    parameters = ",\n    ".join(
        f'{{&AddParameterOf<{python_value(row, p)}>, "{p.name}", '
        f'{quoted((cpp_default(p.type, p.default) or "").replace("std::", ""))}}}' for p in (*row.parameters, *added))
    result = "Tensor" if gives_x else {"Tensor[]": "tuple[Tensor, ...]"}.get(row.result, row.result)
    if "Tensor?" in result:
        result = "Tensor | tuple[Tensor, ...]"
    elif result.startswith("("):
        result = f"tuple[{', '.join(['Tensor'] * result.count('Tensor'))}]"
    doc = ("In place: " if in_place else "") + row.doc
    takes_out = ""
    if row.takes_out and not in_place:
        takes_out = ", {" + ", ".join([".taken = true", *(f".{word} = true" for word in ("casts", "apart") if word in row.settings)]) + "}"
    return "\n".join([f"PyObject* Call{id_}(const Signature& signature, Slots slots) {{", *body, "}",
                      f"constexpr ParameterRow k{id_}Parameters[] = {{\n    {parameters}}};",
                      f"FunctionRow k{id_}Row{{{quoted(name)}, k{id_}Parameters, {quoted(result)},\n    {quoted(doc)},"
                      f"\n    &Call{id_}{takes_out}}};", ""])


def row_id(row, in_place, number):
    in_place = in_place or row.only_method
    return pascal(row.namespace.replace(".", "_")) + pascal(row.name) + ("InPlace" if in_place else "") + (str(number + 1) if number else "")


def python_overloads(overloads, in_place=False):
    """The rows of one name, and the statements that bind it."""
    text = [python_row(row, in_place, i) for i, row in enumerate(overloads)]
    first, ids = overloads[0], [row_id(row, in_place, i) for i, row in enumerate(overloads)]
    row, kind = f"k{ids[0]}Row", ""
    if len(ids) > 1:
        row, kind = f"k{ids[0]}Overloads", "Overloaded"
        text.append(f"FunctionRow* const {row}[] = {{{', '.join(f'&k{i}Row' for i in ids)}}};\n")
    bind = []
    if not in_place and not first.only_method:
        bind.append(f"  BindFunction({row}, &As{kind}Function<{row}>, module, {quoted(first.namespace)});")
    if in_place or first.forms & {"method", "py.method"}:
        bind.append(f"  BindMethod({row}, &As{kind}Method<{row}>);")
    return "\n".join(text), bind


def python_unit(family):
    by_name, in_place = {}, {}
    for row in [row for row in family.rows if "c++" not in row.forms]:
        by_name.setdefault((row.namespace, row.name), []).append(row)
        if "inplace" in row.forms:
            in_place.setdefault(row.name, []).append(row)
    rows = [python_overloads(overloads) for overloads in by_name.values()]
    rows += [python_overloads(overloads, in_place=True) for overloads in in_place.values()]
    text = [NOTE.format(source=f"{ROWS}/{family.name}.txt") + '''#include "lazuli/distributed.h"
#include "lazuli/fft.h"
#include "lazuli/linalg.h"
#include "lazuli/nn.h"
#include "lazuli/ops.h"
#include "lazuli/special.h"
#include "python/src/rows.h"

namespace lazuli::python {
namespace {
''']
    text += [function for function, _ in rows]
    text += ["}  // namespace\n", f"void Bind{pascal(family.name)}Rows(const py::module_& module) {{"]
    text += [line for _, bind in rows for line in bind]
    return "\n".join(text) + "\n}\n\n}  // namespace lazuli::python\n"


LAYERS_PER_UNIT = 12


def layer_units(sections):
    """The sources that bind the layers, by name."""
    rows = [layer for section in sections for layer in section.rows if not layer.written]
    for first in range(0, len(rows), LAYERS_PER_UNIT):
        part = first // LAYERS_PER_UNIT
        text = [NOTE.format(source=LAYERS) + f'''#include "python/src/layer.h"

namespace lazuli::python {{

void BindLayers{part}(py::module_& nn) {{''']
        for layer in rows[first:first + LAYERS_PER_UNIT]:
            types = [f"nn::{layer.name}", *(f"nn::{p.type}" if p.type.endswith("Options") else type_of(p.type).value
                                           for p in layer.arguments)]
            names = ", ".join(p.name + (f" = {cpp_default(p.type, p.default)}" if p.default is not None else "")
                              for p in layer.arguments).replace("std::", "")
            text.append(f"  BindLayer<{', '.join(types)}>(nn, {quoted(layer.name)}, {quoted(f'({names})')},\n"
                        f"      {quoted(layer.doc)});")
        yield f"python/src/layers_{part}.cc", "\n".join(text) + "\n}\n\n}  // namespace lazuli::python\n"
    count = (len(rows) + LAYERS_PER_UNIT - 1) // LAYERS_PER_UNIT
    lines = [NOTE.format(source=LAYERS) + '''#include "python/src/layer.h"

namespace lazuli::python {
''', *(f"void BindLayers{i}(py::module_& nn);" for i in range(count)), "", "void BindLayers(py::module_& nn) {",
             *(f"  BindLayers{i}(nn);" for i in range(count)), "}", "", "}  // namespace lazuli::python"]
    yield "python/src/layers.cc", "\n".join(lines) + "\n"


def layer_table(sections):
    """The module that says of layers what only Python asks: PyTorch's order and names of parameters, text, and of layers whose
    class keeps its arguments all that there is."""
    lines = [f'''# Written by tools/generate_functions.py from {LAYERS}.
"""What Python adds to layers, by name: lazuli.nn._text says what the words mean."""

LAYERS = {{''']
    for layer in (layer for section in sections for layer in section.rows if layer.written != "by_hand"):
        said = entry(layer)
        lines += [f'    "{layer.name}": {{', *(f'        "{word}": {value},' for word, value in said.items()), "    },"] if said else []
    return "\n".join([*lines, "}"]) + "\n"


def entry(layer):
    """What the table says of a layer, as Python's text by word."""
    own, kept = {p.name: p for p in (*layer.parameters, *layer.options)}, layer.written == "kept"
    order = layer.python or [(name, "", "") for name in own]
    names, defaults = {name: torch_name(layer.name, name) for name, _, _ in order}, {}
    for name, _, default in order:
        usual = own[name].default if kept and name in own else ""
        defaults[names[name] if kept else name] = ("None" if kept else "...") if default in names else default or usual or "..."
    rows = {"parameters": defaults if kept or layer.python else {},
            "names": {name: quoted(other) for name, other in names.items() if name != other},
            "like": {names[name]: quoted(names[default]) for name, _, default in order if default in names},
            "tuples": {names[name]: n for name, n, _ in order if n},
            "fixed": {name: value for name, value in layer.fixed if kept and name not in names}}
    said = {word: "{" + ", ".join(f'"{name}": {value}' for name, value in row.items()) + "}" for word, row in rows.items() if row}
    if layer.shows is not None:
        said["shows"] = quoted(layer.shows)
    if kept:
        said |= {"function": quoted(layer.kept or layer.function.split(".")[-1]), "doc": quoted(layer.doc)}
    return said


def python_index(families):
    names = [f"Bind{pascal(f.name)}Rows" for f in families]
    lines = [NOTE.format(source=ROWS) + '''#include "python/src/rows.h"

namespace lazuli::python {
''']
    lines += [f"void {name}(const py::module_& module);" for name in names]
    lines += ["", "void BindRows(const py::module_& module) {", *(f"  {name}(module);" for name in names)]
    return "\n".join(lines) + "\n}\n\n}  // namespace lazuli::python\n"
