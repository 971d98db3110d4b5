"""The rows in C++: declarations with their comments, functions, methods, forms in place, layers."""

import textwrap

from functions.rows import AUTOCAST, KEPT_DEFAULTS, LAYERS, LOC, ROWS, cpp_default, type_of
from functions.text import NOTE, WIDTH, pascal, quoted, wrapped


def comment(text, indent=""):
    lines = []
    for paragraph in text.split("\n"):
        lines += textwrap.wrap(paragraph, WIDTH - len(indent) - 3, break_long_words=False, break_on_hyphens=False)
    return "\n".join(f"{indent}// {line}" for line in lines)


def with_comment(declaration, doc, indent=""):
    """Behind the declaration if there is room on its line, else above it."""
    behind = f"{declaration}  // {doc}"
    if "\n" not in behind and len(behind) <= WIDTH:
        return behind
    return f"{comment(doc, indent)}\n{declaration}"


def declared_parameters(row, skip=0, line=None, defaults=True):
    parts = [p.declared(defaults) for p in row.parameters[skip:]]
    if row.takes_line:
        parts.append(line or (LOC if defaults else "SourceLocation loc"))
    return parts


def function_declaration(row):
    return with_comment(wrapped(f"LAZULI_API {row.cpp_result} {row.name}(", declared_parameters(row), ");"), row.doc)


def method_declaration(row):
    if row.only_method:
        return wrapped(f"Tensor& {row.name}(", declared_parameters(row, skip=1), ");", "  ")
    return wrapped(f"{row.cpp_result} {row.name}(", declared_parameters(row, skip=1), ") const;", "  ")


def in_place_declaration(row):
    return wrapped(f"Tensor& {row.name}_(", declared_parameters(row, skip=1), ");", "  ")


def definition_declaration(row):
    parts, optional = [], True
    for p in reversed(row.parameters):
        optional = optional and p.default is not None and p.type in KEPT_DEFAULTS
        default = "DefaultGenerator()" if p.type == "Generator?" else cpp_default(p.type, p.default)
        parts.insert(0, f"{type_of(p.type).defined} {p.name}" + (f" = {default}" if optional else ""))
    result = "Tensors" if row.result == "Tensor[]" else row.cpp_result
    return wrapped(f"{result} {row.definition}(", parts, ");")


def layer_class(layer):
    """The class up to forward(), for what the template adds."""
    lines = [comment(layer.doc)]
    if layer.options:
        lines += [f"struct {layer.name}Options {{", *(f"  {p.field()};" for p in layer.options), "};"]
    return [*lines, f"class LAZULI_API {layer.name} : public Layer<{layer.name}> {{", " public:", layer.constructor(),
            wrapped("Tensor forward(", [*(p.declared() for p in layer.takes), LOC], ") const;", "  "), *call_of_several(layer)]


def call_of_several(layer):
    """The call operator of a layer that takes more than x."""
    if len(layer.takes) == 1:
        return []
    return [wrapped("Tensor operator()(", [*(p.declared() for p in layer.takes), LOC], ") const {", "  "),
            f'    const NameScope scope = enter("{layer.name}");',
            f"    return forward({', '.join([*(p.name for p in layer.takes), 'loc'])});", "  }"]


def function_layer(layer):
    if not layer.parameters:
        return [f"struct LAZULI_API {layer.name} : Layer<{layer.name}> {{  // {layer.doc.rstrip('.')}",
                "  Tensor forward(const Tensor& x, LAZULI_LOC) const;", "};"]
    explicit = wrapped(f"explicit {layer.name}(", [p.declared() for p in layer.parameters], ")", "  ")
    members = ", ".join(f"{p.name}_({p.name})" for p in layer.parameters)
    one_line = f"{explicit} : {members} {{}}"
    return [comment(layer.doc), f"class LAZULI_API {layer.name} : public Layer<{layer.name}> {{", " public:",
            one_line if len(one_line) <= WIDTH and "\n" not in explicit else f"{explicit}\n      : {members} {{}}",
            wrapped("Tensor forward(", [*(p.declared() for p in layer.takes), LOC], ") const;", "  "), *call_of_several(layer), "", " private:",
            *(f"  {type_of(p.type).value} {p.name}_;" for p in layer.parameters), "};"]


TRAINS = ("train", "training")  # parameters of functions that a layer's mode gives


def forward_body(layer, rows):
    """The call of the layer's function. Where the layer works in place on demand, that is a parameter of no function; whether
    it trains is none of the layer."""
    inplace = any(p.name == "inplace" for p in layer.parameters)
    kept = [p for p in layer.parameters if p.name != "inplace"]
    row = next((row for row in rows if layer.function in (row.name, f"{row.namespace}.{row.name}")), None)
    fixed = {**{name: "is_training()" for name in TRAINS}, **dict(layer.fixed), **{p.name: p.name for p in layer.takes[1:]}}
    given = (f"{p.name}_" for p in kept)
    taken = row.parameters[1:] if row else kept
    passed = [*(fixed.get(p.name) or next(given, None) or cpp_default(p.type, p.default) for p in taken), "loc"]
    first = ".first" if row and row.result.startswith("(") else ""
    call = wrapped(f"return {row.cpp_name if row else 'lazuli::' + layer.function}(", ["x", *passed], f"){first};", "  ")
    if not inplace:
        return call
    if row and "inplace" not in row.forms:  # what the function gives is written
        written = wrapped(f"return y.copy_({row.cpp_name}(", ["x", *passed], "), loc);", "    ")
    else:
        written = wrapped(f"return y.{layer.function}_(", passed, ");", "    ")
    return f"  if (inplace_) {{\n    Tensor y = x;\n{written}\n  }}\n{call}"


def layers(sections, families=()):
    """The definitions of the layers that are functions."""
    rows = [row for family in families for row in family.rows]
    text = [NOTE.format(source=LAYERS) + '''#include "lazuli/nn.h"

namespace lazuli::nn {
''']
    for layer in [layer for section in sections for layer in section.rows if layer.function]:
        head = wrapped(f"Tensor {layer.name}::forward(", [*(p.declared(defaults=False) for p in layer.takes), "SourceLocation loc"], ") const {")
        text.append(f"{head}\n{forward_body(layer, rows)}\n}}")
    return "\n".join(text) + "\n\n}  // namespace lazuli::nn\n"


CLOSED = "}\n"


def passed_parameters(row, self="x"):
    """What the definition is called with; the first parameter of a method is `self`."""
    names = [self if i == 0 and row.only_method else p.name for i, p in enumerate(row.parameters)]
    return [type_of(p.type).passed.format(name=name, op=quoted(row.name), position=i, quoted=quoted(p.name))
            for i, (p, name) in enumerate(zip(row.parameters, names, strict=True))]


def autocast(row):
    """The call with arguments of the dtype that the function takes under autocast; nothing for other functions."""
    precision = next((AUTOCAST[word] for word in row.settings if word in AUTOCAST), None)
    if precision is None:
        return ""
    tensors = [p.name for p in row.parameters if p.type in ("Tensor", "Tensor?", "Tensor[]")]
    cast = [f"cast({p.name})" if p.name in tensors else p.name for p in row.parameters]
    return "\n".join(["  if (autocast_to) [[unlikely]] {",
                      wrapped("const CastArguments cast(", [f"Precision::{precision}", "loc", *tensors], ");", "    "),
                      wrapped(f"return {row.cpp_name}(", [*cast, "loc"], ");", "    "), "  }", ""])


def functions(families):
    """The public functions, each in terms of its definition."""
    text = [NOTE.format(source=ROWS) + '''#include "cpp_api/src/autocast.h"
#include "cpp_api/src/inplace.h"
#include "cpp_api/src/operands.h"
#include "lazuli/distributed.h"
#include "lazuli/fft.h"
#include "lazuli/linalg.h"
#include "lazuli/nn.h"
#include "lazuli/ops.h"
#include "lazuli/special.h"
''']
    space = ""
    for row in sorted([row for family in families for row in family.rows if row.is_defined and not row.only_method],
                      key=lambda row: row.namespace):
        if space != (space := row.cpp_name.rpartition("::")[0]):
            text += ([CLOSED] if len(text) > 1 else []) + [f"namespace {space} {{"]
        op = quoted(row.name)
        head = wrapped(f"{row.cpp_result} {row.name}(", declared_parameters(row, defaults=False), ") {")
        if [p.type for p in row.parameters] == ["Operand", "Operand"]:
            x, y = (p.name for p in row.parameters)
            use = "kArithmetic" if "op" in row.forms else "kInFloats"  # operators alone are of integers, too
            body = f"  return Binary({op}, lazy::{pascal(row.name)}, {use}, {x}, {y});"
        else:
            passed = passed_parameters(row)
            body = f"  return Call(loc, [&] {{ return Out(lazy::{row.definition}({', '.join(passed)})); }});"
            if len(body) > WIDTH:
                body = "  return Call(loc, [&] {\n" + \
                    wrapped(f"return Out(lazy::{row.definition}(", passed, "));", "    ") + "\n  });"
        text.append(f"{head}\n{autocast(row)}{body}\n}}")
    return "\n".join([*text, CLOSED]) + "\n"


def forms(families):
    """Methods and forms in place, by the functions."""
    text = [NOTE.format(source=ROWS) + '''#include "cpp_api/src/inplace.h"
#include "cpp_api/src/operands.h"
#include "lazuli/ops.h"

namespace lazuli {

// --- methods''']
    rows = [row for family in families for row in family.rows]
    for row in rows:
        if "method" not in row.forms:
            continue
        if row.only_method:
            text.append(wrapped(f"Tensor& Tensor::{row.name}(", declared_parameters(row, 1, defaults=False), ") {") + "\n" +
                        wrapped(f"  Call(loc, [&] {{ lazy::{row.definition}(", passed_parameters(row, self="*this"), "); });") +
                        "\n  return *this;\n}")
            continue
        names = [p.name for p in row.parameters[1:]]
        this = "*this"
        if row.parameters[0].type == "Operand":  # which takes the line where the other one stands
            this = f"Operand(*this, {names[0]}.loc())"
        elif row.takes_line:
            names.append("loc")
        head = wrapped(f"{row.cpp_result} Tensor::{row.name}(", declared_parameters(row, 1, defaults=False), ") const {")
        text.append(f"{head}\n" + wrapped(f"return {row.cpp_name}(", [this, *names], ");", "  ") + "\n}")
    text.append("\n// --- in place: x becomes what the function gives for x")
    for row in rows:
        if "inplace" not in row.forms or row.table:  # those of the tables: inplace.cc
            continue
        names = [p.name for p in row.parameters[1:]]
        head = wrapped(f"Tensor& Tensor::{row.name}_(", declared_parameters(row, 1, defaults=False), ") {")
        if "op" in row.forms:
            op = pascal(row.name)
            body = f'  return BinaryInPlace<lazy::{op}Op>("{row.name}_", lazy::{op}, *this, {names[0]});'
        else:
            call = f"{row.cpp_name}({', '.join(['x', *names])})"
            line = "loc" if row.takes_line else f"{names[0]}.loc()"
            body = wrapped(f"return {'BecomeView' if 'view' in row.forms else 'InPlace'}(", [f'"{row.name}_"', "*this", line, f"[&](const Tensor& x) {{ return {call}; }}"],
                           ");", "  ")
        text.append(f"{head}\n{body}\n}}")
    return "\n".join(text) + "\n\n}  // namespace lazuli\n"
