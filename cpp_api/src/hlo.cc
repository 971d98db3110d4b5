#include "lazuli/hlo.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ranges>
#include <unordered_map>

#include "cpp_api/src/facade.h"
#include "cpp_api/src/hlo_access.h"
#include "cpp_api/src/tensor_lists.h"
#include "ir/evaluator/custom_calls.h"
#include "ir/hlo/clone.h"
#include "ir/hlo/dump/module_dump.h"
#include "ir/hlo/proto/proto.h"
#include "ir/hlo/text/attr_text.h"
#include "ir/hlo/text/parser.h"
#include "ir/hlo/text/printer.h"
#include "ir/hlo/verifier.h"
#include "ir/support/float_mode.h"
#include "ir/types/leaves.h"
#include "lazy/execution/capture.h"
#include "lazy/execution/sync.h"
#include "lazy/ops/program/call.h"
#include "lowering/passes/registry.h"
#include "lowering/transforms/vjp.h"

namespace lazuli {

namespace {

HloShape ShapeOf(const ir::Shape& shape) {
  return {Wrap(shape.dtype()), Dims(shape.dims().begin(), shape.dims().end())};
}

std::vector<HloShape> ShapesOf(const std::vector<ir::Shape>& arrays) {
  std::vector<HloShape> shapes;
  for (const ir::Shape& array : arrays) shapes.push_back(ShapeOf(array));
  return shapes;
}

HloInstruction Describe(const hlo::Instruction& i) {
  HloInstruction result{.computation = i.parent()->name(),
                        .name = i.name(),
                        .opcode = std::string(hlo::OpcodeText(i.opcode())),
                        .shape = i.shape().ToString(true),
                        .operands = {},
                        .text = i.ToString()};
  for (const hlo::Instruction* operand : i.operands()) result.operands.push_back(operand->name());
  return result;
}

std::string ReadFile(const std::string& path) {
  std::error_code ignored;
  std::ifstream in;
  if (!std::filesystem::is_directory(path, ignored)) in.open(path, std::ios::binary);
  if (!in.is_open()) throw Error(ErrorCode::kNotFound, ir::Str("hlo: cannot read ", path));
  return {std::istreambuf_iterator<char>(in), {}};
}

// Which results may take which parameters' memory, once each.
std::vector<hlo::Alias> AliasesOf(const std::vector<HloUpdate>& updates,
                                  const std::vector<Tensor>& parameters,
                                  const std::vector<Tensor>& results) {
  std::vector<hlo::Alias> aliases;
  for (const auto& [result, parameter] : updates) {
    const auto in = [](int64_t i, const std::vector<Tensor>& tensors) {
      return i >= 0 && i < static_cast<int64_t>(tensors.size());
    };
    if (!in(result, results) || !in(parameter, parameters)) {
      throw lazy::StatusError(ir::InvalidArgument("trace: there is no result ", result,
                                                  " or no parameter ", parameter, " to update"));
    }
    const ir::Shape& from =
        TensorAccess::Impl(parameters[static_cast<std::size_t>(parameter)])->storage()->shape();
    const ir::Shape& to =
        TensorAccess::Impl(results[static_cast<std::size_t>(result)])->storage()->shape();
    if (!Compatible(from, to)) {
      throw lazy::StatusError(ir::InvalidArgument("trace: result ", result, " is ", to,
                                                  " and updates no parameter of ", from));
    }
    aliases.push_back(
        {.output_index = {result}, .parameter_number = parameter, .parameter_index = {}});
  }
  return aliases;
}

// Flags for the parameters that a derivative is asked for; none if it is for all of them.
lowering::ActiveLeaves ActiveOf(const lazy::Program& program, std::string_view function,
                                const std::vector<std::int64_t>& arguments) {
  if (arguments.empty()) return {};
  const auto count = static_cast<std::int64_t>(program.parameters().size());
  lowering::ActiveLeaves active(program.parameters().size(), false);
  for (const std::int64_t argument : arguments) {
    if (argument < 0 || argument >= count)
      throw lazy::StatusError(ir::InvalidArgument(function, ": there is no argument ", argument,
                                                  ": the module takes ", count));
    const std::size_t at = static_cast<std::size_t>(argument);
    if (active[at])
      throw lazy::StatusError(
          ir::InvalidArgument(function, ": argument ", argument, " is named twice"));
    if (!lazy::IsDifferentiable(program.parameters()[at]))
      throw lazy::StatusError(
          ir::InvalidArgument(function, ": argument ", argument, " is ", program.parameters()[at],
                              ": only floats and complex numbers have derivatives"));
    active[at] = true;
  }
  if (!std::ranges::is_sorted(arguments))
    throw lazy::StatusError(ir::InvalidArgument(function, ": arguments must be in order"));
  return active;
}

// A derivative whose last results are the checks of the program.
HloModule Derived(const lazy::Program& program,
                  absl::StatusOr<std::unique_ptr<hlo::Module>> module) {
  return HloAccess::Wrap(std::make_shared<lazy::Program>(
      lazy::ValueOrThrow(std::move(module)), program.checks(),
      program.num_outputs() - program.results().size() - program.checks().size()));
}

HloModule ScalarGradientOf(const lazy::Program& program, std::string_view function,
                           const std::vector<std::int64_t>& arguments, bool with_values) {
  const ir::ScopedFloatMode mode;
  return Derived(program, lowering::ScalarGradient(
                              program.module(),
                              {.active = ActiveOf(program, function, arguments),
                               .with_values = with_values,
                               .trailing = program.num_outputs() - program.results().size()}));
}

}  // namespace

void HloModule::Impl::Replace(std::shared_ptr<const hlo::Module> module) {
  const int64_t outputs = ir::LeafCount(module->entry()->root()->shape());
  const std::vector<lazy::ProgramCheck>& checks = program->checks();
  if (outputs < static_cast<int64_t>(checks.size())) {
    throw lazy::StatusError(ir::InvalidArgument(module->name(), ": the root has ", outputs,
                                                " arrays, fewer than the program's ", checks.size(),
                                                " checks"));
  }
  program = std::make_shared<lazy::Program>(std::move(module), checks);
}

HloModule::HloModule(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HloModule::HloModule(const HloModule& other) : impl_(std::make_unique<Impl>(*other.impl_)) {}
HloModule::HloModule(HloModule&&) noexcept = default;
HloModule& HloModule::operator=(HloModule other) noexcept {
  std::swap(impl_, other.impl_);
  return *this;
}
HloModule::~HloModule() = default;

HloModule HloModule::parse(std::string_view text) {
  return Guarded([&] { return HloAccess::Wrap(lazy::ValueOrThrow(hlo::ParseModule(text))); });
}

HloModule HloModule::from_proto(std::string_view bytes) {
  return Guarded([&] { return HloAccess::Wrap(lazy::ValueOrThrow(hlo::ParseModuleProto(bytes))); });
}

HloModule HloModule::load(const std::string& path) {
  return Guarded([&] {
    const std::string text = ReadFile(path);
    const bool proto = path.ends_with(".pb");
    auto module = proto ? hlo::ParseModuleProto(text) : hlo::ParseModule(text);
    lazy::ThrowIfError(ir::Prefixed(module.status(), ir::Str(path, proto ? ": " : ":")));
    return HloAccess::Wrap(*std::move(module));
  });
}

HloModule HloModule::trace(
    const std::vector<HloShape>& parameters,
    const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& record,
    const std::vector<HloUpdate>& updates, const std::string& name) {
  Initialize();
  lazy::Capture capture;
  std::vector<Tensor> inputs;
  Guarded([&] {
    const backend::Device device = DeviceAccess::Unwrap(Device());
    for (const auto& [dtype, dims] : parameters) {
      const auto shape = ir::Shape::Make(Unwrap(dtype), dims);
      lazy::ThrowIfError(
          ir::Prefixed(shape.status(), ir::Str("trace: parameter ", inputs.size(), ": ")));
      inputs.push_back(TensorAccess::Wrap(capture.Parameter(*shape, device)));
    }
  });
  const std::vector<Tensor> outputs = record(inputs);  // lines of its own
  return Guarded([&] {
    std::vector<lazy::Tensor> results;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].defined())
        throw lazy::StatusError(
            ir::InvalidArgument("trace: result ", i, " is an undefined tensor"));
      results.push_back(TensorAccess::Unwrap(outputs[i]));
    }
    return HloAccess::Wrap(
        lazy::ValueOrThrow(capture.Finish(results, name, AliasesOf(updates, inputs, outputs))));
  });
}

std::string HloModule::name() const { return impl_->program->name(); }

std::vector<HloShape> HloModule::parameters() const {
  return ShapesOf(impl_->program->parameters());
}

std::vector<HloShape> HloModule::results() const { return ShapesOf(impl_->program->results()); }

std::vector<HloInstruction> HloModule::instructions() const {
  std::vector<HloInstruction> result;
  for (const hlo::Computation* computation : impl_->program->module().PostOrder()) {
    for (const hlo::Instruction* i : computation->PostOrder()) result.push_back(Describe(*i));
  }
  return result;
}

std::string HloModule::to_string(const HloPrintOptions& options) const {
  hlo::PrintOptions print;
  print.percent = options.percent;
  print.layouts = options.layouts;
  print.metadata = options.metadata;
  print.operand_shapes = options.operand_shapes;
  print.large_constants = options.large_constants;
  return hlo::ToString(impl_->program->module(), print);
}

std::string HloModule::to_proto() const {
  return hlo::SerializeModuleProto(impl_->program->module());
}

bool HloModule::operator==(const HloModule& other) const {
  return hlo::Equal(impl_->program->module(), other.impl_->program->module());
}

void HloModule::verify() const {
  Guarded([&] { lazy::ThrowIfError(hlo::Verify(impl_->program->module())); });
}

bool HloModule::run_passes(const std::vector<std::string>& names) {
  return Guarded([&] {
    const ir::ScopedFloatMode mode;
    lowering::PassPipeline pipeline("run_passes");
    for (const std::string& name : names)
      pipeline.Add(lazy::ValueOrThrow(lowering::MakePass(name)));
    std::unique_ptr<hlo::Module> module = impl_->program->module().Clone();
    const bool changed = lazy::ValueOrThrow(pipeline.Run(*module));
    lazy::ThrowIfError(hlo::Verify(*module));
    impl_->Replace(std::move(module));
    return changed;
  });
}

bool HloModule::rewrite(const std::function<std::string(const HloInstruction&)>& replace) {
  // The text of the module with other right sides is the new module.
  std::unordered_map<std::string, std::string> lines;
  for (const HloInstruction& i : instructions()) {
    if (const std::string right = replace(i); !right.empty())
      lines[i.text] = ir::Str("%", i.name, " = ", right);
  }
  if (lines.empty()) return false;
  return Guarded([&] {
    std::string text;
    std::string_view rest;
    const std::string old = hlo::ToString(impl_->program->module());
    for (rest = old; !rest.empty();) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      const std::string_view line = rest.substr(0, end);
      const std::string_view root = line.starts_with("  ROOT ") ? "  ROOT " : "  ";
      const auto found = line.size() > root.size()
                             ? lines.find(std::string(line.substr(root.size())))
                             : lines.end();
      text += found == lines.end() ? std::string(line) : ir::Str(root, found->second);
      text += '\n';
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    impl_->Replace(lazy::ValueOrThrow(hlo::ParseModule(text)));
    return true;
  });
}

std::vector<Tensor> HloModule::call(const std::vector<Tensor>& arguments,
                                    SourceLocation loc) const {
  Initialize();
  return Call(loc, [&] {
    return Wrapped(
        lazy::Call(impl_->program, Unwrapped(arguments), DeviceAccess::Unwrap(Device())));
  });
}

HloModule HloModule::with_gradient(const HloModule& gradient) const {
  return Guarded([&] {
    return HloAccess::Wrap(
        lazy::ValueOrThrow(impl_->program->WithGradient(gradient.impl_->program)));
  });
}

HloModule HloModule::jvp(const std::vector<std::int64_t>& arguments) const {
  return Guarded([&] {
    const ir::ScopedFloatMode mode;
    const lazy::Program& program = *impl_->program;
    return Derived(program, lowering::Jvp(program.module(), ActiveOf(program, "jvp", arguments),
                                          program.num_outputs() - program.results().size()));
  });
}

HloModule HloModule::vjp(const std::vector<std::int64_t>& arguments) const {
  return Guarded([&] {
    const ir::ScopedFloatMode mode;
    const lazy::Program& program = *impl_->program;
    return HloAccess::Wrap(lazy::ValueOrThrow(
        lowering::Gradient(program.module(), ActiveOf(program, "vjp", arguments))));
  });
}

HloModule HloModule::grad(const std::vector<std::int64_t>& arguments) const {
  return Guarded(
      [&] { return ScalarGradientOf(*impl_->program, "grad", arguments, /*with_values=*/false); });
}

HloModule HloModule::value_and_grad(const std::vector<std::int64_t>& arguments) const {
  return Guarded([&] {
    return ScalarGradientOf(*impl_->program, "value_and_grad", arguments, /*with_values=*/true);
  });
}

HloExecutable HloModule::compile(const Device& device, int num_threads) const {
  return HloAccess::Compile(*this, device, num_threads);
}

HloExecutable HloAccess::Compile(const HloModule& module, const Device& device, int num_threads,
                                 bool keeps_copies) {
  return Guarded([&] {
    const backend::Device on = DeviceAccess::Unwrap(device);
    auto options = lazy::ValueOrThrow(lazy::CompileOptionsFor(on));
    constexpr int kMostThreads = 4096;
    if (num_threads < 0 || num_threads > kMostThreads) {
      throw lazy::StatusError(ir::InvalidArgument("compile: num_threads must be between 0 and ",
                                                  kMostThreads, ", not ", num_threads));
    }
    if (num_threads > 0) options.num_threads = num_threads;
    options.keeps_copies &= keeps_copies;
    auto made = std::make_shared<HloExecutable::Impl>(module.impl_->program, on, options);
    lazy::ThrowIfError(made->launcher.Compile());
    return HloExecutable(std::move(made));
  });
}

namespace {

// What a compile leaves of a stage; each stage is the files whose names end so.
struct CompilerStage {
  std::string_view name, end;
  bool outermost;  // without those of compiles inside the compile
};
constexpr CompilerStage kCompilerStages[] = {
    {"hlo", "", true},  // without a compile
    {"optimized_hlo", "_after_optimizations.txt", true},
    {"optimized_hlo_dot", "_after_optimizations.dot", true},
    {"fusion", "fusion.txt", false},
    {"llvm", ".ir-with-opt.ll", false},
    {"asm", ".s", false},
    {"npux", ".npux", false},
};

const CompilerStage& FindStage(const std::string& name) {
  std::string known;
  for (const CompilerStage& stage : kCompilerStages) {
    if (stage.name == name) return stage;
    known += ir::Str(known.empty() ? "" : ", ", stage.name);
  }
  throw lazy::StatusError(
      ir::InvalidArgument("compiler_ir: there is no stage ", name, "; there are ", known));
}

}  // namespace

std::string HloModule::compiler_ir(const std::string& stage, const Device& device) const {
  return Guarded([&] {
    const CompilerStage& wanted = FindStage(stage);
    if (wanted.end.empty()) return hlo::ToString(impl_->program->module());
    const backend::Device on = DeviceAccess::Unwrap(device);
    hlo::CompileCapture capture;
    const auto options = lazy::ValueOrThrow(lazy::CompileOptionsFor(on));
    lazy::Launcher launcher(impl_->program, on, options);
    lazy::ThrowIfError(launcher.Compile());
    std::string text;
    int64_t parts = 0;
    for (const hlo::CompileCapture::File& file : capture.files()) {
      if (!file.name.ends_with(wanted.end) || (wanted.outermost && file.depth > 0)) continue;
      text += file.contents;
      ++parts;
    }
    if (parts == 0)
      throw lazy::StatusError(
          ir::NotFound("compiler_ir: ", on, " makes no ", stage, " of ", impl_->program->name()));
    if (stage == "npux" && parts > 1)
      throw lazy::StatusError(ir::FailedPrecondition("compiler_ir: ", impl_->program->name(),
                                                     " is ", parts, " programs on ", on,
                                                     ", not one; the stage asm shows all of them"));
    return text;
  });
}

namespace {

void AppendResults(ir::Literal& literal, std::vector<CustomCallResult>& arrays) {
  if (literal.shape().IsArray()) {
    HloShape shape = ShapeOf(literal.shape());
    arrays.push_back({shape.dtype, std::move(shape.dims), literal.mutable_raw()});
  }
  for (ir::Literal& element : literal.mutable_tuple()) AppendResults(element, arrays);
}

}  // namespace

std::string BackendConfig(const hlo::Instruction& i) {
  for (const auto& [name, value] : i.extra_attrs()) {
    if (name != "backend_config") continue;
    const bool quoted = value.size() >= 2 && (value[0] == '"' || value[0] == '\'');
    if (!quoted) return value;
    return hlo::Unescape(std::string_view(value).substr(1, value.size() - 2)).value_or(value);
  }
  return "";
}

namespace {

absl::StatusOr<ir::Literal> RunCustomCall(const CustomCall& call, bool with_done,
                                          const hlo::Instruction& i,
                                          absl::Span<const ir::Literal* const> operands) {
  std::vector<CustomCallArray> arrays;
  for (const ir::Literal* operand : operands) {
    ir::ForEachLeaf(*operand, [&](const ir::Literal& leaf) {
      HloShape shape = ShapeOf(leaf.shape());
      arrays.push_back({shape.dtype, std::move(shape.dims), leaf.raw()});
    });
  }
  ir::Literal result(i.shape());
  std::vector<CustomCallResult> results;
  AppendResults(result, results);
  if (with_done) results.pop_back();
  try {
    call(BackendConfig(i), arrays, results);
  } catch (const std::exception& error) {
    return ir::Internal(error.what());
  }
  return result;
}

// Makes the target say what the source says.
void Replace(hlo::Module& target, const hlo::Module& source) {
  const std::vector<hlo::Computation*> old = target.PostOrder();
  for (hlo::Computation* computation : old | std::views::reverse)
    target.RemoveComputation(computation);
  const hlo::Computation* const entry = source.entry();
  target.set_entry(hlo::AddClones({entry}, target).at(entry));
}

// A pass of the user's, on a module that is handed over for the time.
class UserPass final : public lowering::Pass {
 public:
  UserPass(std::string name, std::function<bool(HloModule&)> run)
      : name_(std::move(name)), run_(std::move(run)) {}
  std::string_view name() const override { return name_; }
  bool wants_static_sizes() const override { return false; }  // the user knows the module
  absl::StatusOr<bool> Run(hlo::Module& module) override {
    HloModule copy = HloAccess::Wrap(module.Clone());
    try {
      if (!run_(copy)) return false;
      copy.verify();
    } catch (const std::exception& error) {
      return ir::Internal("pass ", name_, ": ", error.what());
    }
    Replace(module, HloAccess::Unwrap(copy));
    return true;
  }

 private:
  std::string name_;
  std::function<bool(HloModule&)> run_;
};

}  // namespace

void register_custom_call(const std::string& target, CustomCall call) {
  hlo::RegisterCustomCall(target, HostCall(std::move(call), /*with_done=*/false));
}

hlo::CustomCall HostCall(CustomCall call, bool with_done) {
  return [call = std::move(call), with_done](const hlo::Instruction& i,
                                             absl::Span<const ir::Literal* const> operands) {
    return RunCustomCall(call, with_done, i, operands);
  };
}

void transfer_to_infeed(const std::vector<Tensor>& arrays, const Device& device) {
  Guarded([&] {
    hlo::HostTransfers::Transfer transfer;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      if (!arrays[i].defined()) {
        throw lazy::StatusError(
            ir::InvalidArgument("transfer_to_infeed: array ", i, " is an undefined tensor"));
      }
      transfer.push_back(lazy::ToLiteral(TensorAccess::Unwrap(arrays[i])).Clone());
    }
    const backend::Device to = DeviceAccess::Unwrap(device);
    to.client->transfers(to).PushInfeed(std::move(transfer));
  });
}

std::vector<Tensor> transfer_from_outfeed(const Device& device) {
  return Guarded([&] {
    const backend::Device from = DeviceAccess::Unwrap(device);
    std::vector<Tensor> arrays;
    for (const ir::Literal& array :
         from.client->transfers(from).PopOutfeed().value_or(hlo::HostTransfers::Transfer()))
      arrays.push_back(TensorAccess::Wrap(lazy::FromLiteral(array, from)));
    return arrays;
  });
}

void register_pass(const std::string& name, const std::string& doc,
                   std::function<bool(HloModule&)> run, bool every_program) {
  Guarded([&] {
    lowering::AddedPass pass;
    pass.name = name;
    pass.doc = doc;
    pass.make = [name, run = std::move(run)] { return std::make_unique<UserPass>(name, run); };
    pass.every_program = every_program;
    pass.removable = true;
    lazy::ThrowIfError(lowering::AddPass(std::move(pass)));
  });
}

void unregister_pass(const std::string& name) {
  Guarded([&] { lazy::ThrowIfError(lowering::RemovePass(name)); });
}

}  // namespace lazuli
