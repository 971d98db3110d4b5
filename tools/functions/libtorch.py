"""The rows under LibTorch's names: options that are built, layers, losses."""

import re

from functions.rows import LOC, Parameter, cpp_default, torch_name, type_of
from functions.text import WIDTH, pascal, wrapped


def with_tensor_options(row):
    """The function under LibTorch's name: with options instead of a dtype and a device, which come last; a generator, if it
    takes one, stands before them, as there, or is left out. What makes a tensor like another also takes a memory format."""
    generator = [p for p in row.parameters if p.type == "Generator?"]
    parameters = [p for p in row.parameters if p not in generator]
    if row.namespace or [p.type.rstrip("?") for p in parameters[-2:]] != ["DType", "Device"]:
        return []
    *kept, dtype, device = parameters
    made = ["options.dtype()" if dtype.type == "DType?" else f"options.dtype().value_or({cpp_default('DType', dtype.default)})",
            "options.device()" if device.type == "Device?" else "options.device().value_or(Device())"]
    formats = ["std::optional<MemoryFormat> = {}"] if row.name == "empty" or row.name.endswith("_like") else []
    lines = []
    for given in ([], generator) if generator else ([],):
        passed = [*(p.name for p in kept), *made, *(p.name if given else "{}" for p in generator), "loc"]
        head = wrapped(f"inline Tensor {row.name}(", [*(p.declared(defaults=False) for p in [*kept, *given]),
                                                      "const TensorOptions& options" + (" = {}" if given else ""), *formats, LOC], ") {")
        lines.append(f"{head}\n" + wrapped(f"  return options.Finish(lazuli::{row.name}(", passed, "), loc);") + "\n}")
    return lines


def prefixed(row):
    """A function of a namespace under the name that it has outside: linalg_svd of linalg::svd."""
    line, passed = ([LOC], ["loc"]) if row.takes_line else ([], [])
    name = f"{row.namespace}_{row.name}"
    head = wrapped(f"inline {row.cpp_result} {name}(", [*(p.declared() for p in row.parameters), *line], ") {")
    return f"{head}\n" + wrapped(f"  return {row.cpp_name}(", [*(p.name for p in row.parameters), *passed], ");") + "\n}"


def out_function(row):
    """The function that writes its result, or both of them, to tensors: add_out(out, x, y)."""
    results = row.result.count("Tensor")
    if row.namespace not in ("", "fft", "linalg", "special") or row.only_method or "view" in row.forms or "?" in row.result or \
            "[]" in row.result or results not in (1, 2) or any(p.type.rstrip("?") in ("DType", "Device") for p in row.parameters):
        return []
    names, line = [p.name for p in row.parameters], []
    loc = next((f"{p.name}.loc()" for p in row.parameters if p.type == "Operand"), "SourceLocation::current()")
    if row.takes_line:
        names, line, loc = [*names, "loc"], [LOC], "loc"
    name = f"{row.namespace}_{row.name}_out" if row.namespace else f"{row.name}_out"
    taken = [*(p.declared() for p in row.parameters), *line]
    if results == 1:
        head = wrapped(f"inline Tensor& {name}(", ["Tensor& out", *taken], ") {")
        return [f"{head}\n" + wrapped(f'  return internal::WriteOut("{name}", out, {row.cpp_name}(', names, f"), {loc});") + "\n}"]
    first, second = re.findall(r"Tensor (\w+)", row.result)
    outs = [f"{first}_out", f"{second}_out"]
    head = wrapped(f"inline std::tuple<Tensor&, Tensor&> {name}(", [*(f"Tensor& {out}" for out in outs), *taken], ") {")
    return [f"{head}\n" + wrapped(f"  const auto [first_result, second_result] = {row.cpp_name}(", names, ");") + "\n" +
            wrapped("  return {", [f'internal::WriteOut("{name}", {out}, {result}, {loc})'
                                   for out, result in zip(outs, ("first_result", "second_result"), strict=True)], "};") + "\n}"]


def sub_header(path, instead):
    """A header of LibTorch, which stands for torch/torch.h, or says what to do instead."""
    note = f"// LibTorch's {path} (cpp_api/libtorch_headers.txt).\n#pragma once\n\n"
    return note + (f'#error "{path}: {instead}"\n' if instead else "#include <torch/torch.h>\n")


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


def built_options(name, required, own, struct, options, friend, mode=False):
    """A class of options with a setter and a getter for each: those of its own, of which the constructor takes `required`, and
    those of a struct, which it takes, too."""
    layer = name.removesuffix("Options").removesuffix("Func")
    explicit = "explicit " if len(required) == 1 and required[0].default is not None else ""
    note = "  // NOLINT: implicit" if len(required) == 1 and not explicit else ""
    lines = [f"class {name} {{", " public:"]
    if required:
        taken = [*(p.declared() for p in required), *([f"const {struct}& options = {{}}"] if options else [])]
        sets = [*(f"{p.name}_({p.name})" for p in required), *(["options_(options)"] if options else [])]
        lines += [wrapped(f"{explicit}{name}(", taken, f"){note}", "  "), wrapped("    : ", sets, " {}", "  ")]
        braces = {"int[]": "IntList", "int[2]": "ExpandingArray<2>"}.get(required[0].type)
        if braces and all(p.default is not None for p in required[1:]):  # braces, which could be another one's options, too
            lines += [f"  {name}(std::initializer_list<std::int64_t> list)", f"      : {name}({braces}(list)) {{}}"]
    for p, field in [*((p, f"{p.name}_") for p in own), *((p, f"options_.{p.name}") for p in options)]:
        kept = "Dims(v)" if type_of(p.type).value == "Dims" else "v"
        called = torch_name(layer, p.name)
        lines += [in_one_line(f"{name}& {called}({type_of(p.type).parameter} v)", f"return {field} = {kept}, *this;"),
                  in_one_line(f"{getter_type(p)} {called}() const", f"return {stride_or_kernel(p, field)};")]
        if p.name == "output_ratio":  # one number for all dims, as of sizes
            lines.append(in_one_line(f"{name}& {called}(double v)", f"return {called}(std::vector<double>{{v}});"))
        if called == "mode" and layer == "EmbeddingBag":  # kSum and kMean are those of losses, too
            lines += [f"  {name}& mode(lazuli::nn::Reduction v) {{ return mode(v == kSum ? \"sum\" : \"mean\"); }}"]
    lines += ["", " private:", *([f"  friend class {friend};"] if friend else [])]
    lines += [f"  {type_of(p.type).value} {p.name}_;" if p.default is None else f"  {p.field()};".replace(f" {p.name} =", f" {p.name}_ =")
              for p in own]
    return [*lines, *([f"  {struct} options_;"] if options else []), "};"]


def may_be_the_kernel(p):
    return p.name == "stride" and p.type in ("int?", "int[2]?")


def getter_type(p):
    return {"int?": "std::int64_t", "int[2]?": "Size2"}[p.type] if may_be_the_kernel(p) else type_of(p.type).value


def stride_or_kernel(p, field):
    """The value of a field: the stride of a pooling is the kernel's size unless it is given."""
    return f"{field}.value_or(kernel_)" if may_be_the_kernel(p) else field


# What LibTorch prints of a layer: all options as name=value, but of some the first ones bare, some only where they are not as
# usual, and some never.
def prints_bare(layer, p):
    return p.name == "lambd" or p.default is None and p.name != "kernel" and \
        layer.name.startswith(("Conv", "InstanceNorm", "LayerNorm", "GroupNorm", "LocalResponseNorm", "CrossMapLRN"))


def prints_if_changed(layer, p):
    if layer.name.startswith("Conv"):
        return p.default is not None and p.name != "stride"
    return p.name == "inplace" and "Dropout" not in layer.name or p.name in ("size", "scale_factor") and layer.name == "Upsample" or \
        p.name == "bias" and layer.name.endswith("Norm") or layer.name == "EmbeddingBag" and p.default is not None


NEVER_PRINTED = {"GELU": {"approximate"}, "PReLU": {"init"}, "Upsample": {"align_corners"},
                 **{f"FractionalMaxPool{n}d": {"kernel", "output_size", "output_ratio", "_random_samples"} for n in (2, 3)},
                 **{f"AvgPool{n}d": {"ceil_mode", "count_include_pad", "divisor_override"} for n in (1, 2, 3)}}
PRINTED_LAST = ["output_padding", "groups", "bias", "padding_mode"]  # of convolutions


def pretty_print(layer):
    """What `os << layer` gives: torch::nn::Linear(in_features=2, out_features=3, bias=true)."""
    printed = [p for p in (*layer.parameters, *layer.options) if p.name not in NEVER_PRINTED.get(layer.name, ())]
    if layer.name.startswith("Conv"):
        printed.sort(key=lambda p: PRINTED_LAST.index(p.name) if p.name in PRINTED_LAST else -1)
    digits = [c for c in layer.name if c in "123"]
    dims = digits[0] if digits else "2" if layer.name in ("Fold", "Unfold") else "0"
    lines = ["  void pretty_print(std::ostream& os) const override {", f'    LayerText text(os, "{layer.name}", {dims});']
    for p in printed:
        called = torch_name(layer.name, p.name)
        usual = "options.kernel_size()" if p.name == "stride" and "ool" in layer.name else "0" if p.name.endswith("padding") else "1"
        value = f"text.Each(options.{called}(), {usual})" if p.type == "int[]" and dims != "0" else f"options.{called}()"
        if prints_bare(layer, p):
            lines.append(f"    text.Bare({value});")
        elif prints_if_changed(layer, p):
            initial = cpp_default(p.type, p.default)
            initial = f"text.Each({{{initial.strip('{}')}}}, {usual})" if p.type == "int[]" and dims != "0" else \
                f"{getter_type(p)}({initial})" if initial != "{}" else f"{getter_type(p)}{{}}"
            lines.append(f'    text.IfNot({initial}, "{called}", {value});')
        else:
            lines.append(f'    text("{called}", {value});')
    if not printed:
        lines[1] = f'    const LayerText text(os, "{layer.name}", 0);'
    return [*lines, "  }"]


def torch_layer(layer):
    """A layer in LibTorch's words: options, the class that keeps them, its holder. Options that are a struct of their own are
    written by hand."""
    if any(p.type.endswith("Options") for p in layer.parameters):
        return []
    name, own = layer.name, f"lazuli::nn::{layer.name}"
    base = f"LayerWords<{name}Impl, {own}>"
    loc, located = ([], []) if layer.function else ([LOC], ["loc"])
    lines, made, holder = [], [], []
    if layer.arguments:
        arguments = [Parameter(f"lazuli::nn::{p.type}", p.name, p.default) if p.type.endswith("Options") else p
                     for p in layer.arguments]
        declared = [*(p.declared() for p in arguments), *loc]
        given = f"{name}Options({', '.join(p.name for p in arguments)})"
        explicit = "explicit " if sum(p.default is None for p in arguments) < 2 else ""
        lines += built_options(f"{name}Options", layer.parameters, layer.parameters, f"{own}Options", layer.options, f"{name}Impl")
        taken = [*(f"o.{p.name}_" for p in arguments), *located]
        made = [wrapped(f"{explicit}{name}Impl(", declared, ")", "  "), wrapped(f"    : {name}Impl(", [given, *located], ") {}", "  "),
                wrapped(f"explicit {name}Impl(", [f"const {name}Options& o", *loc], ")", "  "),
                wrapped(f"    : {base}(", taken, "), options(o) {}", "  ")]
        holder = [wrapped(f"{explicit}{name}(", declared, ")", "  "), wrapped(f"    : {name}(", [given, *located], ") {}", "  "),
                  wrapped(f"{name}(", [f"const {name}Options& o", *loc], ")  // NOLINT: implicit", "  "),
                  wrapped(f"    : LayerHolder(std::make_shared<{name}Impl>(", ["o", *located], ")) {}", "  ")]
    return [*lines, f"class {name}Impl : public {base} {{", " public:", *made, *named_forward(layer), *pretty_print(layer),
            *with_indices(layer),
            *([f"  const {name}Options options;"] if layer.arguments else []), "};",
            f"class {name} : public LayerHolder<{name}Impl> {{", " public:", "  using LayerHolder::LayerHolder;", *holder,
            *torch_call(layer), *(EMBEDDING if name == "Embedding" else EMBEDDING_BAG if name == "EmbeddingBag" else []), "};"]


def named_forward(layer):
    """What the layer records has its name, called by -> or not."""
    return [wrapped("Tensor forward(", [*(p.declared() for p in layer.takes), LOC], ") const {", "  "),
            f'    const NameScope scope = enter("{layer.name}");',
            f"    return lazuli::nn::{layer.name}::forward({', '.join([*(p.name for p in layer.takes), 'loc'])});", "  }"]


def with_indices(layer):
    """Of maximum pooling: the largest elements, and where they stand."""
    if layer.name.startswith("FractionalMaxPool"):
        passed = [*(f"options.{p.name if p.name != 'kernel' else 'kernel_size'}()" for p in layer.parameters[:-1]), "true",
                  "options._random_samples()"]
        return ["  std::pair<Tensor, Tensor> forward_with_indices(const Tensor& x, LAZULI_LOC) const {",
                wrapped(f"  return lazuli::nn::functional::fractional_max_pool{layer.name[-2:]}(", ["x", *passed, "loc"], ");", "  "), "  }"]
    if not layer.name.startswith("MaxPool"):
        return []
    passed = [f"options.{torch_name(layer.name, p.name)}()" for p in (*layer.parameters, *layer.options)]
    return ["  std::pair<Tensor, Tensor> forward_with_indices(const Tensor& x, LAZULI_LOC) const {",
            wrapped(f"  return lazuli::max_pool{layer.name[-2:]}_with_indices(", ["x", *passed, "loc"], ");", "  "), "  }"]


def torch_call(layer):
    passed = ", ".join([*(p.name for p in layer.takes), "loc"])
    if len(layer.takes) == 1:
        return [f"  Tensor operator()(const Tensor& x, LAZULI_LOC) const {{ return get()->forward({passed}); }}"]
    return [wrapped("Tensor operator()(", [*(p.declared() for p in layer.takes), LOC], ") const {", "  "),
            f"    return get()->forward({passed});", "  }"]


# A table that begins as a tensor of rank 2, and stays so if it is frozen.
EMBEDDING = ["""  static Embedding from_pretrained(const Tensor& embeddings,
                                   const EmbeddingFromPretrainedOptions& o = {}, LAZULI_LOC) {
    if (embeddings.dim() != 2)
      internal::Fail(
          ErrorCode::kInvalidArgument,
          str("Embedding::from_pretrained: takes a tensor of rank 2, not ", embeddings.dim()), loc);
    Embedding made(
        EmbeddingOptions(embeddings.size(0), embeddings.size(1)).padding_idx(o.padding_idx()), loc);
    made->weight.set_data(embeddings.detach(loc), loc);
    made->weight.set_requires_grad(!o.freeze(), loc);
    return made;
  }"""]


EMBEDDING_BAG = ["""  static EmbeddingBag from_pretrained(const Tensor& embeddings,
                                      const EmbeddingBagFromPretrainedOptions& o = {}, LAZULI_LOC) {
    if (embeddings.dim() != 2)
      internal::Fail(ErrorCode::kInvalidArgument,
                     str("EmbeddingBag::from_pretrained: takes a tensor of rank 2, not ", embeddings.dim()), loc);
    EmbeddingBag made(EmbeddingBagOptions(embeddings.size(0), embeddings.size(1))
                          .mode(o.mode())
                          .include_last_offset(o.include_last_offset())
                          .padding_idx(o.padding_idx()),
                      loc);
    made->weight.set_data(embeddings.detach(loc), loc);
    made->weight.set_requires_grad(!o.freeze(), loc);
    return made;
  }"""]


# Whose functions with options are written by hand.
WRITTEN_OPTIONS = {"AdaptiveAvgPool2d", "LeakyReLU", "RReLU", "LogSoftmax", "Softmax", "Softmax2d", "Upsample", "cross_entropy", "mse_loss", "nll_loss"}


# LibTorch's names of options of functions, where they are not those of the loss.
FUNCTION_OPTIONS = {"KLDivLossOptions": "KLDivFuncOptions", "BCELossOptions": "BinaryCrossEntropyFuncOptions",
                    "BCEWithLogitsLossOptions": "BinaryCrossEntropyWithLogitsFuncOptions",
                    "MultiLabelMarginLossOptions": "MultilabelMarginLossFuncOptions",
                    "MultiLabelSoftMarginLossOptions": "MultilabelSoftMarginLossFuncOptions"}


def function_with_options(cpp_name, options, layer, tensors):
    """`using` of the function, which another one of its name would hide, and the one that takes options of a layer, or of a loss."""
    name = cpp_name.split("::")[-1]
    passed = ", ".join([*(p.name for p in tensors), "loc"])
    func = FUNCTION_OPTIONS.get(options, options.removesuffix("Options") + "FuncOptions")
    return [f"using {func} = {options};",
            f"using {cpp_name};", f"template <std::same_as<{options}> O>",
            wrapped(f"Tensor {name}(", [*(p.declared() for p in tensors), "const O& o", LOC], ") {"),
            f"  return {layer}(o)->forward({passed});", "}"]


def torch_function_options(layer, rows):
    """The function of a layer with the layer's options."""
    row = next((row for row in rows if layer.function in (row.name, f"{row.namespace}.{row.name}")), None)
    if row is None or not layer.arguments or layer.name in WRITTEN_OPTIONS or len(layer.takes) > 1 or \
            set(dict(layer.fixed)) - {"return_indices"} or any(p.name == "train" for p in row.parameters):
        return []
    cpp_name = f"lazuli::nn::functional::{row.name}" if "nn.functional" in {row.namespace, *row.forms} else f"lazuli::{row.name}"
    return function_with_options(cpp_name, f"{layer.name}Options", f"nn::{layer.name}", [Parameter("Tensor", "x", None)])


# Functions whose options are no layer's, and which tensors they take in a row behind those that have no default.
OPTIONS_OF_THEIR_OWN = {"batch_norm": {"running_mean", "running_var"}, "conv1d": (), "conv3d": (), "conv_transpose1d": (), "conv_transpose2d": (),
                        "conv_transpose3d": (), "embedding": (), "embedding_bag": (), "grid_sample": (), "group_norm": (), "instance_norm": (),
                        "layer_norm": (), "max_unpool1d": (), "max_unpool2d": (), "max_unpool3d": ()}


def torch_row_options(row):
    """The function of a row with options that are built: tensors in a row, all else as options."""
    if row.name not in OPTIONS_OF_THEIR_OWN:
        return []
    name = f"{pascal(row.name)}FuncOptions"
    tensors = [p for p in row.parameters if p.type == "Tensor" or p.name in OPTIONS_OF_THEIR_OWN[row.name]]
    rest = [Parameter(p.type.replace("int[1]", "int"), p.name, p.default) for p in row.parameters if p not in tensors]
    space = "lazuli::nn::functional" if "nn.functional" in {row.namespace, *row.forms} else "lazuli"
    passed = [p.name if p in tensors else f"o.{torch_name(pascal(row.name), p.name)}()" for p in row.parameters]
    return [*built_options(name, [p for p in rest if p.default is None], rest, "", [], ""), f"using {space}::{row.name};",
            f"template <std::same_as<{name}> O>",
            wrapped(f"Tensor {row.name}(", [*(p.declared(defaults=False) for p in tensors), "const O& o", LOC], ") {"),
            wrapped(f"  return {space}::{row.name}(", [*passed, "loc"], ");"), "}"]


LOSSES = {"bce": "BCE", "nll": "NLL", "kl": "KL", "mse": "MSE", "l1": "L1", "div": "Div", "ctc": "CTC"}
LOSS_NAMES = {"binary_cross_entropy": "BCELoss", "binary_cross_entropy_with_logits": "BCEWithLogitsLoss", "cross_entropy":
              "CrossEntropyLoss", "kl_div": "KLDivLoss", "multilabel_margin_loss": "MultiLabelMarginLoss",
              "multilabel_soft_margin_loss": "MultiLabelSoftMarginLoss"}


def torch_loss(row):
    """A loss, or a similarity, as a module: the tensors are what forward() takes, the rest are options."""
    if not is_loss(row) or row.name == "kl_div":  # whose mean has two meanings: written by hand
        return []
    name = loss_name(row)
    tensors = [p for p in row.parameters if p.type == "Tensor"]
    fields = [p for p in row.parameters if p.type != "Tensor"]
    passed = [p.name if p.type == "Tensor" else f"options.{p.name}()" for p in row.parameters]
    options = built_options(f"{name}Options", [], fields, "", [], f"{name}Impl")
    if row.name not in SIMILARITIES:
        options[2:2] = [f"  {name}Options() = default;",
                        f"  {name}Options(Reduction reduction) : reduction_(reduction) {{}}  // NOLINT: implicit"]
    space = "functional" if row.namespace else "lazuli"
    return [*options,
            f"class {name}Impl : public Module {{", " public:",
            f"  explicit {name}Impl(const {name}Options& options = {{}})", "      : options(options) {}",
            wrapped("Tensor forward(", [*(p.declared() for p in tensors), LOC], ") const {", "  "),
            wrapped(f"  return {space}::{row.name}(", [*passed, "loc"], ");", "  "), "  }",
            "  void pretty_print(std::ostream& os) const override {", f'    LayerText text(os, "{name}", 0);',
            *(f'    text("{p.name}", options.{p.name}());' for p in fields if row.name in SIMILARITIES), "  }",
            f"  const {name}Options options;", "};", f"class {name} : public ModuleHolder<{name}Impl> {{", " public:",
            "  using ModuleHolder::ModuleHolder;",
            wrapped("Tensor operator()(", [*(p.declared() for p in tensors), LOC], ") const {", "  "),
            f"    return get()->forward({', '.join([*(p.name for p in tensors), 'loc'])});", "  }", "};"]


SIMILARITIES = {"cosine_similarity", "pairwise_distance"}  # modules of two tensors that are no loss


def loss_name(row):
    return LOSS_NAMES.get(row.name) or "".join(LOSSES.get(part, part.capitalize()) for part in row.name.split("_"))


def is_loss(row):
    reduces = "Reduction" in [p.type for p in row.parameters] and row.result == "Tensor"
    return row.name in SIMILARITIES or row.namespace == "nn.functional" and reduces


def torch_loss_options(row):
    """The function of a loss with the loss' options."""
    if not is_loss(row) or row.name in WRITTEN_OPTIONS:
        return []
    name = loss_name(row)
    space = "lazuli::nn::functional" if "nn.functional" in {row.namespace, *row.forms} else "lazuli"
    return function_with_options(f"{space}::{row.name}", f"{name}Options", f"nn::{name}",
                                 [p for p in row.parameters if p.type == "Tensor"])
