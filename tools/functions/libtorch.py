"""The rows under LibTorch's names: options that are built, layers, losses."""

from functions.rows import LOC, Parameter, cpp_default, type_of
from functions.text import WIDTH, wrapped


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


def in_place_function(row):
    """The form in place as a function: relu_(x)."""
    names, line = [p.name for p in row.parameters[1:]], []
    if row.takes_line:
        names, line = [*names, "loc"], [LOC]
    head = wrapped(f"inline Tensor& {row.name}_(", ["Tensor& x", *(p.declared() for p in row.parameters[1:]), *line], ") {")
    return f"{head}\n" + wrapped(f"  return x.{row.name}_(", names, ");") + "\n}"


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
