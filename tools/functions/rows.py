"""The rows of public functions and layers, as they are read and checked."""

from __future__ import annotations

import dataclasses
import re

from functions.text import pascal, wrapped

ROWS = "lazy/ops/functions"
LAYERS = "cpp_api/nn/layers.txt"
TEMPLATES = {"cpp_api/include": "include", "lazy/ops": "lazy/ops"}  # where they are, and what they become
LOC = "LAZULI_LOC"
FORMS = {"method", "inplace", "py.method", "c++", "written", "view", "op"}  # and namespaces
SHADOWING = {"linalg"}  # namespaces with names that others have: they begin those of the definitions
AUTOCAST = {"narrow": "kNarrow", "float32": "kFloat32", "widest": "kWidest"}  # @narrow NAME...: the dtype that rows of the file take under autocast
SETTINGS = {"casts", "apart", "tensors", "first_tensor", "rows", "none", *AUTOCAST}  # @casts NAME...: rows that Python calls by another rule


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
    if text.startswith("("):
        return "{" + text[1:-1] + "}"
    return {"True": "true", "False": "false"}.get(text, text)


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
        """Whether there is x.name_(...) alone: what is drawn in place is not a function of x."""
        return "method" in self.forms and self.parameters[0].type == "Tensor!"

    @property
    def takes_out(self):
        """Whether the function of Python takes out=: those that give new tensors."""
        return self.namespace in ("", "fft", "linalg") and not self.only_method and "view" not in self.forms and "?" not in self.result and \
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
    takes: tuple = (Parameter("Tensor", "x"),)  # what forward() does
    written: str = ""  # the class of Python: "by_hand", "kept" made of this row, or else the one of C++
    kept: str = ""  # the function that Python's class of a row calls, where it is another one
    python: tuple = ()  # (name, numbers in a tuple or "", default) in Python's order; without a default as the row has it
    shows: str | None = None  # what Python's repr() shows, or else all parameters

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


# PyTorch's names of the parameters of layers, where they are others than the rows', of all layers and of some.
TORCH_NAMES = {"kernel": "kernel_size", "low": "min_val", "high": "max_val"}
TORCH_NAMES_OF = {
    **{name: {"rows": "num_embeddings", "dim": "embedding_dim"} for name in ("Embedding", "EmbeddingBag")},
    "GroupNorm": {"groups": "num_groups", "channels": "num_channels"}, "PReLU": {"channels": "num_parameters"},
    **{name: {"affine": "elementwise_affine"} for name in ("LayerNorm", "RMSNorm")}, "Unflatten": {"sizes": "unflattened_size"},
    **{f"Adaptive{kind}Pool{n}d": {"size": "output_size"} for kind in ("Avg", "Max") for n in (1, 2, 3)},
    **{f"{kind}Norm{n}d": {"channels": "num_features"} for kind in ("Batch", "Instance") for n in (1, 2, 3)}}


def torch_name(layer, name):
    return TORCH_NAMES_OF.get(layer, {}).get(name) or TORCH_NAMES.get(name, name)


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
        raise ValueError(f"'{text}' is not a parameter: TYPE name or TYPE name=default")
    type_of(match[1])
    return Parameter(match[1], match[2], match[3])


def parse_signature(text, doc, namespace):
    match = re.fullmatch(r"(\w+)\((.*)\) -> (\([^()]*\)|[\w\[\]]+)(?: : (.+))?", text)
    if not match:
        raise ValueError(f"'{text}' is not a row: name(parameters) -> result : forms")
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


def taken(name):
    """What forward() takes: a tensor, one that may be undefined (y?), or numbers (z[])."""
    if name.endswith("[]"):
        return Parameter("int[]", name[:-2], "()")
    return Parameter("Tensor?", name[:-1], "None") if name.endswith("?") else Parameter("Tensor", name)


def python_order(text, parameters, kept):
    """What python= says of these parameters: (name, numbers in a tuple, default) in Python's order."""
    order = [re.fullmatch(r"(\w+)(?:\[(\d+)\])?(?:=(.*))?", part).groups("") for part in text.split(",")]
    known = {p.name for p in parameters if not p.type.endswith("Options")}
    # A row's own parameters have its defaults, unless Python keeps the arguments, or None stands for another one.
    own = {name for name, _, default in order if not default or name in known and (kept or default in known)}
    has_fields = any(p.type.endswith("Options") for p in parameters)  # which the row does not name
    if not (known <= own if has_fields else known == own):
        raise ValueError(f"python= names the parameters {', '.join(p.name for p in parameters)} alone, and others with a default")
    return tuple(order)


def parse_layer(text, doc):
    match = re.fullmatch(r"(\w+)\((.*)\)(?: : (.+))?", text)
    if not match or not doc:
        raise ValueError(f"'{text}' is not a layer: Name(parameters) or Name(parameters) : function, and documentation")
    parameters, _, options = match[2].partition("*")
    words = [word for word in (match[3] or "").split() if word != ":"]
    names = [word for word in words if word not in ("by_hand", "kept") and "=" not in word]
    if len(names) > 1:
        raise ValueError(f"a layer calls one function, not {' and '.join(names)}")
    settings = dict(word.split("=", 1) for word in words if "=" in word)
    takes = tuple(taken(name) for name in settings.pop("takes", "x").split(","))
    parameters, options = (tuple(parse_parameter(p) for p in split(part)) for part in (parameters, options))
    kept, shows = settings.pop("kept", ""), settings.pop("shows", None)
    written = next((word for word in ("by_hand", "kept") if word in words), "kept" if kept else "")
    order = settings.pop("python", "")
    python = python_order(order, (*parameters, *options), written == "kept") if order else ()
    return LayerRow(match[1], parameters, options, names[0] if names else "", doc, tuple(settings.items()), takes, written, kept,
                    python, shows)


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
    tables = {kind: parse_table(root / ROWS / f"{kind}.def", kind) for kind in ("unary", "binary", "compare")}
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
