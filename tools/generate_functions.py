#!/usr/bin/env python3
"""Writes what derives from the rows of public functions (lazy/ops/functions/*.txt, lazy/ops/{unary,binary,compare}.def) and
layers (cpp_api/nn/layers.txt):

  include/lazuli/*.h        the public headers, from the templates cpp_api/include/lazuli/*.h.in
  lazy/ops/functions.h      the declarations of the definitions, from the template beside it
  cpp_api/src/functions.cc  the public functions, each in terms of its definition
  cpp_api/src/forms.cc      methods and forms in place, in terms of the functions
  cpp_api/nn/layers.cc      the layers that are functions
  python/src/rows_*.cc      the functions and methods of Python
  python/src/layers_*.cc    the layers of Python
  docs/functions.md         the page

    tools/generate_functions.py ROOT OUT

Files of OUT that would not change are left alone, those that no row gives are removed. Prints what was read, for the build
to watch.

docs/adding_a_function.md describes the rows. A template is the header itself with lines that stand for rows:

  @functions NAME...    the declarations of these files, by section
  @using NAMESPACE      using-declarations of the rows that list the namespace as a form
  @methods              declarations of the methods (in the class Tensor)
  @inplace              declarations of the forms in place (likewise)
  @definitions          declarations of the definitions, in lazuli::lazy
  @layer NAME           a layer's comment, its options, and its class up to forward()
  @function_layers      the layers that are functions
  @torch_layers         the layers under LibTorch's names: options that are built, and holders
  @torch_losses         the losses of nn.functional as modules
  @torch_function_options  functions of layers and losses with their options
  @tensor_options       for the functions that take a dtype and a device, overloads that take LibTorch's TensorOptions
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
import sys
import textwrap

ROWS = "lazy/ops/functions"
LAYERS = "cpp_api/nn/layers.txt"
TEMPLATES = {"cpp_api/include": "include", "lazy/ops": "lazy/ops"}  # where they are, and what they become
WIDTH = 100
LOC = "LAZULI_LOC"
FORMS = {"method", "inplace", "py.method", "c++", "written", "view", "op"}  # and namespaces
SHADOWING = {"linalg"}  # namespaces with names that others have: they begin those of the definitions
SETTINGS = {"casts", "apart", "tensors", "first_tensor", "rows"}  # @casts NAME...: rows of the file that Python calls by another rule


# --- types

@dataclasses.dataclass(frozen=True)
class Type:
    """A type of the rows: how a public parameter is declared, what Python's binding loads, how the definition takes it and
    how it is passed there."""
    parameter: str
    value: str
    defined: str
    passed: str = "In({name})"


def by_value(name, defined=None):
    return Type(name, name, defined or name.replace("std::int64_t", "int64_t"), "In({name})" if defined else "{name}")


def by_reference(name, defined, passed="In({name})"):
    return Type(f"const {name}&", name, defined, passed)


CHECKED = "In({name}, {op}, {position}, {quoted})"  # must be defined
TYPES = {
    "Tensor": by_reference("Tensor", "const Tensor&", CHECKED),
    "Tensor?": by_reference("Tensor", "const Tensor&", "TensorAccess::Borrow({name})"),  # undefined: none
    "Tensor!": Type("Tensor", "Tensor", "const Tensor&", CHECKED),  # written to
    "Tensor[]": by_reference("std::vector<Tensor>", "absl::Span<const Tensor>", CHECKED),
    "Operand": by_reference("Operand", "const Operand&"),  # a tensor or a number, and the caller's line
    "Scalar": by_reference("Scalar", "const Number&"),
    "Scalar?": by_reference("std::optional<Scalar>", "const std::optional<Number>&"),
    "int": by_value("std::int64_t"),
    "int?": by_value("std::optional<std::int64_t>"),
    "int[]": Type("const IntList&", "Dims", "absl::Span<const int64_t>", "{name}"),
    "int[]?": by_reference("std::optional<Dims>", "const std::optional<Dims>&"),
    "int[1]": Type("std::int64_t", "Size1", "int64_t", "{name}"),  # Python takes (n,), too
    "int[1]?": Type("std::optional<std::int64_t>", "std::optional<Size1>", "std::optional<int64_t>", "{name}"),
    "int[2]": by_value("Size2", "Pair"),  # one number stands for both
    "int[2]?": by_value("OptionalSize2", "std::optional<Pair>"),
    **{f"Sides{n}": Type(f"const Sides<{n}>&", f"Sides<{n}>", "absl::Span<const int64_t>", "{name}") for n in (1, 2, 3)},  # of layers
    "Padding": by_value("Padding", "ConvPadding"),  # an int[2], "same" or "valid"
    "float": by_value("double"),
    "float?": by_value("std::optional<double>"),
    "float[]": by_reference("std::vector<double>", "absl::Span<const double>", "{name}"),
    "bool": by_value("bool"),
    "bool?": by_value("std::optional<bool>"),
    "str": by_reference("std::string", "std::string_view", "{name}"),
    "str?": by_reference("std::optional<std::string>", "const std::optional<std::string>&", "{name}"),
    "DType": by_value("DType", "DType"),
    "DType?": by_value("std::optional<DType>", "std::optional<DType>"),
    "Device": by_reference("Device", "backend::Device"),
    "Device?": by_reference("std::optional<Device>", "const std::optional<backend::Device>&"),
    "Generator?": Type("const OptionalGenerator&", "std::optional<Generator>", "Generator&"),  # none: the process' own
}
ENUMS = {"Reduction": "nn", "Nonlinearity": "nn.init", "Unbiased": ""}  # and the namespace they are in
RESULTS = {"Tensor": "Tensor", "Tensor[]": "std::vector<Tensor>", "float": "double", "None": "void"}
# Of definitions: the defaults that gradients and composites use, too.
KEPT_DEFAULTS = {"int", "int?", "int[]", "bool", "float?", "DType?", "Device?", "Generator?"}


def type_of(name):
    if name in TYPES:
        return TYPES[name]
    if name in ENUMS:
        return by_value(name, name)
    if name.endswith("Options"):
        return by_reference(name, f"const {name}&")
    raise ValueError(f"no type {name}")


def cpp_default(type_name, text):
    """'None' of a Tensor? -> '{}', 'mean' of a Reduction -> 'Reduction::kMean'."""
    if text is None:
        return None
    if type_name in ENUMS:
        return f"{type_name}::k{text[0].upper()}{text[1:]}"
    if type_name == "DType":
        return f"k{text[0].upper()}{text[1:]}"
    if type_name == "Device":
        return "Device()"
    if text == "None":
        return "{}" if type_name == "Tensor?" else "std::nullopt"
    return {"True": "true", "False": "false", "()": "{}"}.get(text, text)


# --- rows

@dataclasses.dataclass(frozen=True)
class Parameter:
    type: str
    name: str
    default: str | None = None

    def declared(self, defaults=True):
        default = cpp_default(self.type, self.default) if defaults else None
        return f"{type_of(self.type).parameter} {self.name}" + (f" = {default}" if default is not None else "")

    def field(self):
        """Of a struct, which owns its lists."""
        return f"{type_of(self.type).value} {self.name} = {cpp_default(self.type, self.default)}"

    def text(self):
        return f"{self.type} {self.name}" + (f"={self.default}" if self.default is not None else "")


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    parameters: tuple
    result: str
    forms: frozenset
    doc: str  # paragraphs, one per line
    namespace: str = ""
    table: str = ""  # of a row of unary.def, binary.def or compare.def, which
    settings: frozenset = frozenset()  # of SETTINGS

    @property
    def cpp_name(self):
        return "::".join(["lazuli", *self.namespace.split(".")] if self.namespace else ["lazuli"]) + f"::{self.name}"

    @property
    def takes_line(self):
        """Operands carry the caller's line, and what touches no tensor needs none."""
        types = [p.type for p in self.parameters]
        return "Operand" not in types and any("Tensor" in t for t in [*types, self.result])

    @property
    def cpp_result(self):
        if self.result.startswith("("):
            return "std::pair<Tensor, Tensor>" if self.result.count("Tensor") == 2 else \
                f"std::tuple<{', '.join(['Tensor'] * self.result.count('Tensor'))}>"
        return RESULTS[self.result]

    @property
    def definition(self):
        """The name of the definition: that of a view stands beside one of the values alone."""
        home = pascal(self.namespace) if self.namespace in SHADOWING else ""
        return home + pascal(self.name) + ("View" if "view" in self.forms else "InPlace" if self.only_method else "")

    @property
    def is_defined(self):
        """Whether the public function is made of a definition in lazy/ops."""
        return not self.table and "written" not in self.forms

    @property
    def only_method(self):
        """Whether there is x.name_(...) alone: what is drawn in place is no function of x."""
        return "method" in self.forms and self.parameters[0].type == "Tensor!"

    @property
    def takes_out(self):
        """Whether the function of Python takes out=: those that give new tensors."""
        return not self.namespace and not self.only_method and "view" not in self.forms and "?" not in self.result and \
            (self.result == "Tensor" or self.result.startswith("("))

    def signature(self):
        return f"{self.name}({', '.join(p.text() for p in self.parameters)}) -> {self.result}"


@dataclasses.dataclass
class Section:
    title: str
    rows: list


@dataclasses.dataclass
class Family:
    name: str
    sections: list

    @property
    def rows(self):
        return [row for section in self.sections for row in section.rows]


@dataclasses.dataclass(frozen=True)
class LayerRow:
    """A layer: a class of nn whose constructor takes the parameters."""
    name: str
    parameters: tuple
    options: tuple  # the fields of an options struct, which comes last
    function: str  # what forward() calls with the parameters, or ""
    doc: str
    fixed: tuple = ()  # (parameter, value) of the function that the layer sets
    only_cpp: bool = False  # Python has a class of its own

    @property
    def arguments(self):
        """The parameters of the constructor in C++: the options are one."""
        return (*self.parameters, Parameter(f"{self.name}Options", "options", "{}")) if self.options else self.parameters

    def constructor(self):
        required = [p for p in self.arguments if p.default is None]
        explicit = "explicit " if self.arguments and len(required) < 2 else ""
        return wrapped(f"{explicit}{self.name}(", [*(p.declared() for p in self.arguments), LOC], ");", "  ")

    def signature(self):
        star = ["*"] if self.options else []
        return f"{self.name}({', '.join([p.text() for p in self.parameters] + star + [p.text() for p in self.options])})"


def split(text):
    """The parts between commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def parse_parameter(text):
    match = re.fullmatch(r"([\w.]+(?:\[\d*\])?[?!]?) (\w+)(?:=(.+))?", text)
    if not match:
        raise ValueError(f"'{text}' is no parameter: TYPE name or TYPE name=default")
    type_of(match[1])
    return Parameter(match[1], match[2], match[3])


def parse_signature(text, doc, namespace):
    match = re.fullmatch(r"(\w+)\((.*)\) -> (\([^()]*\)|[\w\[\]]+)(?: : (.+))?", text)
    if not match:
        raise ValueError(f"'{text}' is no row: name(parameters) -> result : forms")
    name, parameters, result, forms = match.groups()
    if not doc:
        raise ValueError(f"{name} has no documentation")
    if not result.startswith("(") and result not in RESULTS:
        raise ValueError(f"no result {result}")
    return Row(name, tuple(parse_parameter(p) for p in split(parameters)), result, frozenset((forms or "").split()), doc,
               namespace)


def paragraphs(lines):
    """Lines of documentation as paragraphs, one line each."""
    return "\n".join(" ".join(block.split()) for block in "\n".join(lines).strip("\n").split("\n\n") if block.strip())


def entries(path):
    """What a file of rows holds, each as (line number, text, documentation): rows, sections (--- title), settings (@word)."""
    lines = path.read_text(encoding="utf-8").splitlines()
    i = 0
    while i < len(lines):
        text, doc = lines[i], []
        i += 1
        start = i
        if not text.strip() or text.startswith("#"):
            continue
        if text.startswith("--- "):
            while i < len(lines) and lines[i].startswith("--- "):
                text += lines[i].removeprefix("---")
                i += 1
        elif not text.startswith("@"):
            while i < len(lines) and (text.count("(") > text.count(")") or lines[i].lstrip().startswith(": ")):
                text += " " + lines[i].strip()
                i += 1
            while i < len(lines) and (not lines[i].strip() or lines[i].startswith("  ")):
                doc.append(lines[i])
                i += 1
        yield start, " ".join(text.split()), paragraphs(doc)


def parse_family(path, tables):
    """The sections of a file of rows. `tables`: rows of the .def files by name, for lines like @unary."""
    family, namespace, written, settings = Family(path.stem, []), "", (), {}
    for start, text, doc in entries(path):
        try:
            if text.startswith("--- "):
                family.sections.append(Section(text[4:], []))
            elif text.startswith("@"):
                word, *arguments = text[1:].split()
                if word == "namespace":
                    namespace = arguments[0]
                elif word == "written":
                    written = ("written",)
                elif word in SETTINGS:
                    for name in arguments:
                        settings.setdefault(name, set()).add(word)
                else:
                    family.sections[-1].rows += tables[word]
            else:
                if not family.sections:
                    family.sections.append(Section("", []))
                row = parse_signature(text, doc, namespace)
                family.sections[-1].rows.append(dataclasses.replace(row, forms=row.forms.union(written)))
        except (ValueError, KeyError, IndexError) as error:
            raise SystemExit(f"{path}:{start}: {error}") from error
    unknown = settings.keys() - {row.name for row in family.rows}
    if unknown:
        raise SystemExit(f"{path}: there is no row {min(unknown)}, which @{min(settings[min(unknown)])} names")
    for section in family.sections:
        section.rows = [dataclasses.replace(row, settings=row.settings.union(settings.get(row.name, ()))) for row in section.rows]
    return family


def parse_layer(text, doc):
    match = re.fullmatch(r"(\w+)\((.*)\)(?: : (.+))?", text)
    if not match or not doc:
        raise ValueError(f"'{text}' is no layer: Name(parameters) or Name(parameters) : function, and documentation")
    parameters, _, options = match[2].partition("*")
    words = (match[3] or "").split()
    names = [word for word in words if word != "c++" and "=" not in word]
    if len(names) > 1:
        raise ValueError(f"a layer calls one function, not {' and '.join(names)}")
    return LayerRow(match[1], tuple(parse_parameter(p) for p in split(parameters)), tuple(parse_parameter(p) for p in split(options)),
                    names[0] if names else "", doc, tuple(tuple(word.split("=")) for word in words if "=" in word), "c++" in words)


def parse_layers(path):
    """The layers of a file of rows, in sections."""
    sections = []
    for start, text, doc in entries(path) if path.is_file() else ():
        try:
            if text.startswith("--- "):
                sections.append(Section(text[4:], []))
            else:
                sections[-1].rows.append(parse_layer(text, doc))
        except (ValueError, IndexError) as error:
            raise SystemExit(f"{path}:{start}: {error}") from error
    return sections


def parse_table(path, kind):
    """The rows of unary.def, binary.def or compare.def."""
    parameters = {"unary": (Parameter("Tensor", "x"),)}.get(kind, (Parameter("Operand", "x"), Parameter("Operand", "y")))
    forms = frozenset(["method", "inplace"])
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        match = re.match(r'LAZULI_\w+\(\w+, \w+, (\w+), \w+(?:, (\w+))?.*"((?:[^"\\]|\\.)*)"\)$', line)
        if match:
            # One operand that keeps its dtype gives that to out=; what promotes writes as what it promotes to.
            casts = kind != "unary" or match[2] in ("kFloat", "kTruth")
            settings = frozenset(["casts"] if casts else []) | (frozenset(["first_tensor"]) if kind == "compare" else frozenset())
            rows.append(Row(match[1], parameters, "Tensor", forms, match[3], "", kind, settings))
    return rows


def read(root):
    tables = {kind: parse_table(root / f"lazy/ops/{kind}.def", kind) for kind in ("unary", "binary", "compare")}
    return [parse_family(path, tables) for path in sorted((root / ROWS).glob("*.txt"))]


def check(families):
    """Complaints about rows that contradict each other."""
    seen = {}
    for family in families:
        for row in family.rows:
            first = row.parameters[0].name if row.parameters else ""
            if row.forms & {"method", "inplace", "py.method"} and first != "x":
                yield f"{family.name}: {row.name}: a method's first parameter is x"
            optional = [p.name for p in row.parameters if p.default is not None]
            required = [p.name for p in row.parameters if p.default is None]
            if [p.name for p in row.parameters] != required + optional:
                yield f"{family.name}: {row.name}: a parameter without a default follows one with"
            key = (row.namespace, row.name, tuple(type_of(p.type).parameter for p in row.parameters))
            if key in seen:
                yield f"{family.name}: {row.name} has the parameters of one in {seen[key]}"
            seen[key] = family.name


# --- C++

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
            "  Tensor forward(const Tensor& x, LAZULI_LOC) const;"]


def function_layer(layer):
    if not layer.parameters:
        return [f"struct LAZULI_API {layer.name} : Layer<{layer.name}> {{  // {layer.doc.rstrip('.')}",
                "  Tensor forward(const Tensor& x, LAZULI_LOC) const;", "};"]
    explicit = wrapped(f"explicit {layer.name}(", [p.declared() for p in layer.parameters], ")", "  ")
    members = ", ".join(f"{p.name}_({p.name})" for p in layer.parameters)
    one_line = f"{explicit} : {members} {{}}"
    return [comment(layer.doc), f"class LAZULI_API {layer.name} : public Layer<{layer.name}> {{", " public:",
            one_line if len(one_line) <= WIDTH and "\n" not in explicit else f"{explicit}\n      : {members} {{}}",
            "  Tensor forward(const Tensor& x, LAZULI_LOC) const;", "", " private:",
            *(f"  {type_of(p.type).value} {p.name}_;" for p in layer.parameters), "};"]


def forward_body(layer, rows):
    """The call of the layer's function. Where the layer works in place on demand, that is a parameter of no function; whether
    it trains is none of the layer."""
    inplace = any(p.name == "inplace" for p in layer.parameters)
    kept = [p for p in layer.parameters if p.name != "inplace"]
    row = next((row for row in rows if layer.function in (row.name, f"{row.namespace}.{row.name}")), None)
    fixed = {"train": "is_training()", **dict(layer.fixed)}
    given = (f"{p.name}_" for p in kept)
    taken = row.parameters[1:] if row else kept
    passed = [*(fixed.get(p.name) or next(given, None) or cpp_default(p.type, p.default) for p in taken), "loc"]
    first = ".first" if row and row.result.startswith("(") else ""
    call = wrapped(f"return {row.cpp_name if row else 'lazuli::' + layer.function}(", ["x", *passed], f"){first};", "  ")
    if not inplace:
        return call
    return ("  if (inplace_) {\n    Tensor y = x;\n" + wrapped(f"return y.{layer.function}_(", passed, ");", "    ") + "\n  }\n" + call)


def layers(sections, families=()):
    """The definitions of the layers that are functions."""
    rows = [row for family in families for row in family.rows]
    text = [NOTE.format(source=LAYERS) + '''#include "lazuli/nn.h"

namespace lazuli::nn {
''']
    for layer in [layer for section in sections for layer in section.rows if layer.function]:
        text.append(f"Tensor {layer.name}::forward(const Tensor& x, SourceLocation loc) const {{\n{forward_body(layer, rows)}\n}}")
    return "\n".join(text) + "\n\n}  // namespace lazuli::nn\n"


def header(template, families, sections=()):
    """A template with its lines that stand for rows replaced."""
    by_name = {family.name: family for family in families}
    rows = [row for family in families for row in family.rows]
    lines = []
    for line in template.splitlines():
        word, *arguments = line.strip()[1:].split() if line.strip().startswith("@") else [""]
        if word == "functions":
            sections_of = [s for name in arguments for s in by_name[name].sections]
            for section in [s for s in sections_of if not all(row.only_method for row in s.rows)]:
                if section.title:
                    lines.append(comment("--- " + section.title))
                lines += [function_declaration(row) for row in section.rows if not row.only_method]
                lines.append("")
            lines.pop()
        elif word == "using":
            lines += sorted(f"using {row.cpp_name};" for row in rows if arguments[0] in row.forms)
        elif word == "methods":
            lines += [method_declaration(row) for row in rows if "method" in row.forms]
        elif word == "inplace":
            lines += [in_place_declaration(row) for row in rows if "inplace" in row.forms]
        elif word == "layer":
            lines += next(layer_class(layer) for section in sections for layer in section.rows if layer.name == arguments[0])
        elif word == "function_layers":
            lines += [line for section in sections for layer in section.rows if layer.function for line in function_layer(layer)]
        elif word == "torch_layers":
            lines += [line for section in sections for layer in section.rows for line in torch_layer(layer)]
        elif word == "torch_losses":
            lines += [line for row in rows for line in torch_loss(row)]
        elif word == "torch_function_options":
            lines += [line for section in sections for layer in section.rows for line in torch_function_options(layer, rows)]
            lines += [line for row in rows for line in torch_loss_options(row)]
        elif word == "tensor_options":
            lines += [line for row in rows for line in with_tensor_options(row)]
        elif word == "definitions":
            lines += [definition_declaration(row) for row in rows if row.is_defined]
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def with_tensor_options(row):
    """The function under LibTorch's name: with options instead of a dtype and a device, which come last; a generator, if it
    takes one, stands before them, as there, or is left out."""
    generator = [p for p in row.parameters if p.type == "Generator?"]
    parameters = [p for p in row.parameters if p not in generator]
    if row.namespace or [p.type.rstrip("?") for p in parameters[-2:]] != ["DType", "Device"]:
        return []
    *kept, dtype, device = parameters
    made = ["options.dtype()" if dtype.type == "DType?" else f"options.dtype().value_or({cpp_default('DType', dtype.default)})",
            "options.device()" if device.type == "Device?" else "options.device().value_or(Device())"]
    lines = [f"using lazuli::{row.name};"]
    for given in ([], generator) if generator else ([],):
        passed = [*(p.name for p in kept), *made, *(p.name if given else "{}" for p in generator), "loc"]
        head = wrapped(f"inline Tensor {row.name}(", [*(p.declared(defaults=False) for p in [*kept, *given]),
                                                      "const TensorOptions& options", LOC], ") {")
        lines.append(f"{head}\n" + wrapped(f"  return options.Finish(lazuli::{row.name}(", passed, "), loc);") + "\n}")
    return lines


def in_one_line(head, body, indent="  "):
    """A function whose body is one statement."""
    line = f"{indent}{head} {{ {body} }}"
    return line if len(line) <= WIDTH else f"{indent}{head} {{\n{indent}  {body}\n{indent}}}"


def built_options(name, required, own, struct, options, friend):
    """A class of options with a setter for each: those of its own, of which the constructor takes `required`, and those
    of a struct."""
    explicit = "explicit " if len(required) == 1 and required[0].default is not None else ""
    note = "  // NOLINT: implicit" if len(required) == 1 and not explicit else ""
    lines = [f"class {name} {{", " public:"]
    if required:
        sets = ", ".join(f"{p.name}_({p.name})" for p in required)
        lines += [wrapped(f"{explicit}{name}(", [p.declared() for p in required], f"){note}", "  "), f"      : {sets} {{}}"]
        if required[0].type == "int[]" and all(p.default is not None for p in required[1:]):  # braces, which could be another one's options, too
            lines += [f"  {name}(std::initializer_list<std::int64_t> list)", f"      : {name}(IntList(list)) {{}}"]
    for p, field in [*((p, f"{p.name}_") for p in own), *((p, f"options_.{p.name}") for p in options)]:
        kept = "Dims(v)" if type_of(p.type).value == "Dims" else "v"
        called = torch_name(name.removesuffix("Options"), p.name)
        lines.append(in_one_line(f"{name}& {called}({type_of(p.type).parameter} v)", f"return {field} = {kept}, *this;"))
    lines += ["", " private:", f"  friend class {friend};"]
    lines += [f"  {type_of(p.type).value} {p.name}_;" if p.default is None else f"  {p.field()};".replace(f" {p.name} =", f" {p.name}_ =")
              for p in own]
    return [*lines, *([f"  {struct} options_;"] if options else []), "};"]


# LibTorch's names of options, where they are others than the rows', of all layers and of some.
TORCH_NAMES = {"kernel": "kernel_size", "low": "min_val", "high": "max_val"}
TORCH_NAMES_OF = {
    "Embedding": {"rows": "num_embeddings", "dim": "embedding_dim"}, "GroupNorm": {"groups": "num_groups", "channels": "num_channels"},
    "LayerNorm": {"affine": "elementwise_affine"}, "PReLU": {"channels": "num_parameters"},
    **{f"Adaptive{kind}Pool{n}d": {"size": "output_size"} for kind in ("Avg", "Max") for n in (1, 2, 3)},
    **{f"InstanceNorm{n}d": {"channels": "num_features"} for n in (1, 2, 3)}}


def torch_name(layer, name):
    return TORCH_NAMES_OF.get(layer, {}).get(name) or TORCH_NAMES.get(name, name)


def torch_layer(layer):
    """A layer in LibTorch's words. Options that are a struct of their own are written by hand."""
    if any(p.type.endswith("Options") for p in layer.parameters):
        return []
    name, impl = layer.name, f"lazuli::nn::{layer.name}"
    loc, located = ([], []) if layer.function else ([LOC], ["loc"])
    lines = [f"using {name}Impl = {impl};"]
    if layer.arguments:
        lines += built_options(f"{name}Options", layer.parameters, layer.parameters, f"{impl}Options", layer.options, name)
    lines += [f"class {name} : public ModuleHolder<{impl}> {{", " public:", "  using ModuleHolder::ModuleHolder;"]
    if layer.arguments:
        arguments = [Parameter(f"lazuli::nn::{p.type}", p.name, p.default) if p.type.endswith("Options") else p
                     for p in layer.arguments]
        explicit = "explicit " if sum(p.default is None for p in arguments) < 2 else ""
        made = f"      : ModuleHolder(std::make_shared<{impl}>("
        lines += [wrapped(f"{explicit}{name}(", [*(p.declared() for p in arguments), *loc], ")", "  "),
                  wrapped(made, [*(p.name for p in arguments), *located], ")) {}"),
                  wrapped(f"{name}(", [f"const {name}Options& o", *loc], ")  // NOLINT: implicit", "  "),
                  wrapped(made, [*(f"o.{p.name}_" for p in arguments), *located], ")) {}")]
    return [*lines, "  Tensor operator()(const Tensor& x, LAZULI_LOC) const { return get()->forward(x, loc); }", "};"]


# Whose functions with options are written by hand.
WRITTEN_OPTIONS = {"AdaptiveAvgPool2d", "LeakyReLU", "LogSoftmax", "Softmax", "Softmax2d", "Upsample", "cross_entropy", "mse_loss", "nll_loss"}


def function_with_options(cpp_name, options, layer, tensors):
    """`using` of the function, which another one of its name would hide, and the one that takes options of a layer, or of a loss."""
    name = cpp_name.split("::")[-1]
    passed = ", ".join([*(p.name for p in tensors), "loc"])
    return [f"using {options.removesuffix('Options')}FuncOptions = {options};" if not options.startswith("KLDiv") else f"using KLDivFuncOptions = {options};",
            f"using {cpp_name};", f"template <std::same_as<{options}> O>",
            wrapped(f"Tensor {name}(", [*(p.declared() for p in tensors), "const O& o", LOC], ") {"),
            f"  return {layer}(o)->forward({passed});", "}"]


def torch_function_options(layer, rows):
    """The function of a layer with the layer's options."""
    row = next((row for row in rows if layer.function in (row.name, f"{row.namespace}.{row.name}")), None)
    if row is None or not layer.arguments or layer.name in WRITTEN_OPTIONS or dict(layer.fixed) or any(p.name == "train" for p in row.parameters):
        return []
    cpp_name = f"lazuli::nn::functional::{row.name}" if "nn.functional" in {row.namespace, *row.forms} else f"lazuli::{row.name}"
    return function_with_options(cpp_name, f"{layer.name}Options", f"nn::{layer.name}", [Parameter("Tensor", "x", None)])


LOSSES = {"bce": "BCE", "nll": "NLL", "kl": "KL", "mse": "MSE", "l1": "L1", "div": "Div", "ctc": "CTC"}
LOSS_NAMES = {"binary_cross_entropy": "BCELoss", "binary_cross_entropy_with_logits": "BCEWithLogitsLoss", "cross_entropy":
              "CrossEntropyLoss", "kl_div": "KLDivLoss", "multilabel_margin_loss": "MultiLabelMarginLoss",
              "multilabel_soft_margin_loss": "MultiLabelSoftMarginLoss"}


def torch_loss(row):
    """A loss as a module: the tensors are what forward() takes, the rest are options."""
    if not is_loss(row):
        return []
    name = loss_name(row)
    tensors = [p for p in row.parameters if p.type == "Tensor"]
    fields = [p for p in row.parameters if p.type != "Tensor"]
    passed = [p.name if p.type == "Tensor" else f"options_.{p.name}_" for p in row.parameters]
    options = built_options(f"{name}Options", [], fields, "", [], f"{name}Impl")
    options[2:2] = [f"  {name}Options() = default;",
                    f"  {name}Options(Reduction reduction) : reduction_(reduction) {{}}  // NOLINT: implicit"]
    return [*options,
            f"class {name}Impl : public Module {{", " public:",
            f"  explicit {name}Impl(const {name}Options& options = {{}})", "      : options_(options) {}",
            wrapped("Tensor forward(", [*(p.declared() for p in tensors), LOC], ") const {", "  "),
            wrapped(f"  return functional::{row.name}(", [*passed, "loc"], ");", "  "), "  }", "", " private:",
            f"  {name}Options options_;", "};", f"class {name} : public ModuleHolder<{name}Impl> {{", " public:",
            "  using ModuleHolder::ModuleHolder;",
            wrapped("Tensor operator()(", [*(p.declared() for p in tensors), LOC], ") const {", "  "),
            f"    return get()->forward({', '.join([*(p.name for p in tensors), 'loc'])});", "  }", "};"]


def loss_name(row):
    return LOSS_NAMES.get(row.name) or "".join(LOSSES.get(part, part.capitalize()) for part in row.name.split("_"))


def is_loss(row):
    return row.namespace == "nn.functional" and "Reduction" in [p.type for p in row.parameters] and row.result == "Tensor"


def torch_loss_options(row):
    """The function of a loss with the loss' options."""
    if not is_loss(row) or row.name in WRITTEN_OPTIONS:
        return []
    name = loss_name(row)
    return function_with_options(f"lazuli::nn::functional::{row.name}", f"{name}Options", f"nn::{name}",
                                 [p for p in row.parameters if p.type == "Tensor"])


CLOSED = "}\n"
NOTE = "// Written by tools/generate_functions.py from the rows of {source}.\n"


def pascal(name):
    return "".join(part.capitalize() for part in name.split("_"))


def passed_parameters(row, self="x"):
    """What the definition is called with; the first parameter of a method is `self`."""
    names = [self if i == 0 and row.only_method else p.name for i, p in enumerate(row.parameters)]
    return [type_of(p.type).passed.format(name=name, op=quoted(row.name), position=i, quoted=quoted(p.name))
            for i, (p, name) in enumerate(zip(row.parameters, names, strict=True))]


def functions(families):
    """The public functions, each in terms of its definition."""
    text = [NOTE.format(source=ROWS) + '''#include "cpp_api/src/inplace.h"
#include "cpp_api/src/operands.h"
#include "lazuli/distributed.h"
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
            body = f"  return Binary({op}, lazy::{pascal(row.name)}, kArithmetic, {x}, {y});"
        else:
            passed = passed_parameters(row)
            body = f"  return Call(loc, [&] {{ return Out(lazy::{row.definition}({', '.join(passed)})); }});"
            if len(body) > WIDTH:
                body = "  return Call(loc, [&] {\n" + \
                    wrapped(f"return Out(lazy::{row.definition}(", passed, "));", "    ") + "\n  });"
        text.append(f"{head}\n{body}\n}}")
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


# --- Python

def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def python_value(row, p):
    value = type_of(p.type).value
    if value == "Operand" and ("tensors" in row.settings or ("first_tensor" in row.settings and p is row.parameters[0])):
        value = "Tensor"  # which no number stands for
    if value == "Dims" and "rows" in row.settings:
        value = "DimsRow"
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


def python_row(row, in_place=False, number=0):
    """What Python calls for a row, and its FunctionRow, with the number of the overload."""
    if in_place:  # of a tensor, whatever the function takes
        row = dataclasses.replace(row, parameters=(Parameter("Tensor", "x"), *row.parameters[1:]))
    name, id_ = row.name + ("_" if in_place else ""), row_id(row, in_place, number)
    body = [f"  Given<{python_value(row, p)}> {p.name}(signature, slots, {i});" for i, p in enumerate(row.parameters)]
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
    rows = [layer for section in sections for layer in section.rows if not layer.only_cpp]
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


def python_index(families):
    names = [f"Bind{pascal(f.name)}Rows" for f in families]
    lines = [NOTE.format(source=ROWS) + '''#include "python/src/rows.h"

namespace lazuli::python {
''']
    lines += [f"void {name}(const py::module_& module);" for name in names]
    lines += ["", "void BindRows(const py::module_& module) {", *(f"  {name}(module);" for name in names)]
    return "\n".join(lines) + "\n}\n\n}  // namespace lazuli::python\n"


# --- documentation

def in_table(doc):
    return doc.replace("|", "\\|").replace("\n", "<br>")


def page(families, layer_sections):
    lines = ["# Functions", "",
             "What users call, in C++ (`lazuli/ops.h`, `lazuli/nn.h`) and in Python. Written by `./lz docs` from the rows of "
             f"`{ROWS}`; a test keeps it current.", "",
             "A function with a method is called as `x.name(...)`, too; one in place, `x.name_(...)`, gives x the result."]
    for family in families:
        for section in family.sections:
            lines += ["", f"## {(section.title or family.name).partition(':')[0].partition(';')[0].partition('.')[0].capitalize()}",
                      "", "| function | forms | meaning |", "| --- | --- | --- |"]
            for row in section.rows:
                name = f"{row.namespace}.{row.signature()}" if row.namespace else row.signature()
                shown = [f for f in ("method", "py.method", "inplace") if f in row.forms]
                shown = ["in place" if f == "inplace" else "method of Python" if f == "py.method" else f for f in shown]
                if "c++" in row.forms:
                    shown.append("C++")
                lines.append(f"| `{name}` | {', '.join(shown)} | {in_table(row.doc)} |")
    if layer_sections:
        lines += ["", "## Layers", "", "| layer | meaning |", "| --- | --- |"]
        lines += [f"| `nn.{layer.signature()}` | {in_table(layer.doc)} |" for s in layer_sections for layer in s.rows]
    return "\n".join(lines) + "\n"


# --- the program

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
    files["cpp_api/src/functions.cc"] = functions(families)
    files["cpp_api/src/forms.cc"] = forms(families)
    for family in families:
        files[f"python/src/rows_{family.name}.cc"] = python_unit(family)
    files["python/src/all_rows.cc"] = python_index(families)
    files["cpp_api/nn/layers.cc"] = layers(sections, families)
    files |= dict(layer_units(sections))
    files["docs/functions.md"] = page(families, sections)
    return files


def inputs(root):
    """What a build has to watch: files, and the folders in which one may appear."""
    yield root / "tools/generate_functions.py"
    yield root / ROWS
    yield from sorted((root / ROWS).glob("*.txt"))
    yield root / LAYERS
    yield from (root / f"lazy/ops/{kind}.def" for kind in ("unary", "binary", "compare"))
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
    for file in out.rglob("*"):
        if file.is_file() and file not in files:
            file.unlink()
    print("\n".join(str(path) for path in inputs(root)))


if __name__ == "__main__":
    main(sys.argv[1:])
