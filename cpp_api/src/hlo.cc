#include "lazuli/hlo.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ranges>
#include <thread>
#include <unordered_map>

#include "cpp_api/src/facade.h"
#include "cpp_api/src/hlo_access.h"
#include "ir/evaluator/custom_calls.h"
#include "ir/evaluator/evaluator.h"
#include "ir/hlo/devices/collective.h"
#include "ir/hlo/dump/module_dump.h"
#include "ir/hlo/proto/proto.h"
#include "ir/hlo/text/attr_text.h"
#include "ir/hlo/text/parser.h"
#include "ir/hlo/text/printer.h"
#include "ir/hlo/verifier.h"
#include "ir/support/float_mode.h"
#include "ir/types/leaves.h"
#include "lazy/execution/sync.h"
#include "lowering/passes/registry.h"

namespace lazuli {

namespace {

// Runs a call that has no line of its own; an internal error becomes Error.
template <class F>
decltype(auto) Guarded(F&& f) {
  Initialize();
  return Call(SourceLocation(), std::forward<F>(f));
}

HloShape ShapeOf(const ir::Shape& shape) {
  return {Wrap(shape.dtype()), Dims(shape.dims().begin(), shape.dims().end())};
}

void AppendLeaves(const ir::Shape& shape, std::vector<HloShape>& leaves) {
  ir::ForEachLeaf(shape, [&](const ir::Shape& leaf) { leaves.push_back(ShapeOf(leaf)); });
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

Tensor FromBuffer(backend::BufferPtr buffer) {
  return TensorAccess::Wrap(lazy::Tensor(
      lazy::Context::Current().NewStorage(ir::MakeIntrusive<lazy::DataHandle>(std::move(buffer)))));
}

std::vector<ir::Shape> ParametersOf(const hlo::Module& module) {
  std::vector<ir::Shape> parameters;
  for (const hlo::Instruction* parameter : module.entry()->parameters()) {
    ir::ForEachLeaf(parameter->shape(), [&](const ir::Shape& leaf) { parameters.push_back(leaf); });
  }
  return parameters;
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

// The first of the failed checks as an error; the values are what they found.
void ThrowIfFailed(const std::vector<lazy::CapturedProgram::Check>& checks,
                   absl::Span<const int64_t> values) {
  for (std::size_t i = 0; i < checks.size(); ++i) {
    if (values[i] != lowering::RuntimeCheck::kNoOffender)
      throw lazy::StatusError(lazy::ErrorOfCheck(checks[i].message, checks[i].of, values[i]));
  }
}

// The leaves of a module's parameters against what it is called with.
void CheckArguments(const hlo::Module& module, const std::vector<Tensor>& arguments) {
  const std::vector<ir::Shape> parameters = ParametersOf(module);
  if (arguments.size() != parameters.size()) {
    throw lazy::StatusError(ir::InvalidArgument(module.name(), " takes ", parameters.size(),
                                                " arguments, not ", arguments.size()));
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].defined())
      throw lazy::StatusError(
          ir::InvalidArgument(module.name(), ": argument ", i, " is an undefined tensor"));
    const ir::Shape& given = TensorAccess::Impl(arguments[i])->storage()->shape();
    if (!Compatible(given, parameters[i])) {
      throw lazy::StatusError(ir::InvalidArgument(module.name(), ": argument ", i, " is ", given,
                                                  ", not ", parameters[i]));
    }
  }
}

}  // namespace

HloModule::HloModule(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HloModule::HloModule(const HloModule& other)
    : impl_(std::make_unique<Impl>(Impl{other.impl_->module->Clone(), other.impl_->checks})) {}
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
    lazy::CapturedProgram program =
        lazy::ValueOrThrow(capture.Finish(results, name, AliasesOf(updates, inputs, outputs)));
    return HloAccess::Wrap(HloModule::Impl{std::move(program.module), std::move(program.checks)});
  });
}

std::string HloModule::name() const { return impl_->module->name(); }

std::vector<HloShape> HloModule::parameters() const {
  std::vector<HloShape> shapes;
  for (const hlo::Instruction* parameter : impl_->module->entry()->parameters())
    AppendLeaves(parameter->shape(), shapes);
  return shapes;
}

std::vector<HloShape> HloModule::results() const {
  std::vector<HloShape> shapes;
  AppendLeaves(impl_->module->entry()->root()->shape(), shapes);
  shapes.resize(shapes.size() - impl_->checks.size());
  return shapes;
}

std::vector<HloInstruction> HloModule::instructions() const {
  std::vector<HloInstruction> result;
  for (const hlo::Computation* computation : impl_->module->PostOrder()) {
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
  return hlo::ToString(*impl_->module, print);
}

std::string HloModule::to_proto() const { return hlo::SerializeModuleProto(*impl_->module); }

bool HloModule::operator==(const HloModule& other) const {
  return hlo::Equal(*impl_->module, *other.impl_->module);
}

void HloModule::verify() const {
  Guarded([&] { lazy::ThrowIfError(hlo::Verify(*impl_->module)); });
}

bool HloModule::run_passes(const std::vector<std::string>& names) {
  return Guarded([&] {
    const ir::ScopedFloatMode mode;
    lowering::PassPipeline pipeline("run_passes");
    for (const std::string& name : names)
      pipeline.Add(lazy::ValueOrThrow(lowering::MakePass(name)));
    auto changed_module = impl_->module->Clone();  // an error leaves the module as it is
    const bool changed = lazy::ValueOrThrow(pipeline.Run(*changed_module));
    lazy::ThrowIfError(hlo::Verify(*changed_module));
    impl_->module = std::move(changed_module);
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
    const std::string old = hlo::ToString(*impl_->module);
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
    impl_->module = lazy::ValueOrThrow(hlo::ParseModule(text));
    return true;
  });
}

HloExecutable HloModule::compile(const Device& device, int num_threads) const {
  return HloAccess::Compile(*this, device, num_threads);
}

HloExecutable HloAccess::Compile(const HloModule& module, const Device& device, int num_threads,
                                 bool keeps_copies) {
  return Guarded([&] {
    const HloModule::Impl& impl = *module.impl_;
    const backend::Device on = DeviceAccess::Unwrap(device);
    auto options = lazy::ValueOrThrow(lazy::CompileOptionsFor(on));
    constexpr int kMostThreads = 4096;
    if (num_threads < 0 || num_threads > kMostThreads) {
      throw lazy::StatusError(ir::InvalidArgument("compile: num_threads must be between 0 and ",
                                                  kMostThreads, ", not ", num_threads));
    }
    if (num_threads > 0) options.num_threads = num_threads;
    options.keeps_copies &= keeps_copies;
    auto executable = lazy::ValueOrThrow(on.client->Compile(impl.module->Clone(), options));
    return Wrap(
        {impl.module->name(), std::move(executable), on, impl.checks, ParametersOf(*impl.module)});
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
    if (wanted.end.empty()) return hlo::ToString(*impl_->module);
    const backend::Device on = DeviceAccess::Unwrap(device);
    hlo::CompileCapture capture;
    const auto options = lazy::ValueOrThrow(lazy::CompileOptionsFor(on));
    lazy::ThrowIfError(on.client->Compile(impl_->module->Clone(), options).status());
    std::string text;
    int64_t parts = 0;
    for (const hlo::CompileCapture::File& file : capture.files()) {
      if (!file.name.ends_with(wanted.end) || (wanted.outermost && file.depth > 0)) continue;
      text += file.contents;
      ++parts;
    }
    if (parts == 0)
      throw lazy::StatusError(
          ir::NotFound("compiler_ir: ", on, " makes no ", stage, " of ", impl_->module->name()));
    if (stage == "npux" && parts > 1)
      throw lazy::StatusError(ir::FailedPrecondition("compiler_ir: ", impl_->module->name(), " is ",
                                                     parts, " programs on ", on,
                                                     ", not one; the stage asm shows all of them"));
    return text;
  });
}

namespace {

// The values of a module's parameters.
class Arguments {
 public:
  Arguments(const hlo::Module& module, const std::vector<Tensor>& tensors) {
    CheckArguments(module, tensors);
    std::vector<ir::Literal> leaves;
    for (const Tensor& tensor : tensors)
      leaves.push_back(lazy::ToLiteral(TensorAccess::Unwrap(tensor)));
    std::size_t next = 0;
    for (const hlo::Instruction* parameter : module.entry()->parameters())
      values_.push_back(ir::FromLeaves(parameter->shape(), leaves, &next));
  }
  std::vector<const ir::Literal*> pointers() const {
    std::vector<const ir::Literal*> pointers;
    for (const ir::Literal& value : values_) pointers.push_back(&value);
    return pointers;
  }

 private:
  std::vector<ir::Literal> values_;
};

backend::Device DeviceOf(const std::vector<Tensor>& arguments) {
  return DeviceAccess::Unwrap(arguments.empty() ? Device() : arguments[0].device());
}

// The leaves of what an evaluation gave, without those of the checks, which throw.
std::vector<Tensor> ResultsOf(const ir::Literal& result, backend::Device device,
                              const std::vector<lazy::CapturedProgram::Check>& checks) {
  std::vector<ir::Literal> values;
  ir::ForEachLeaf(result, [&](const ir::Literal& leaf) { values.push_back(leaf); });
  const std::size_t count = values.size() - checks.size();
  std::vector<int64_t> found;
  for (std::size_t i = count; i < values.size(); ++i) found.push_back(values[i].data<int64_t>()[0]);
  ThrowIfFailed(checks, found);
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < count; ++i)
    results.push_back(TensorAccess::Wrap(lazy::FromLiteral(values[i], device)));
  return results;
}

// An error where the program is for another number of devices than there are lists of arguments.
void CheckDeviceCount(const hlo::Module& module, std::size_t lists) {
  const auto count = static_cast<std::size_t>(hlo::DeviceCount(module));
  if (lists == count || (count == 1 && lists > 0)) return;
  throw lazy::StatusError(ir::InvalidArgument(module.name(), " is for ", count, " devices, ", lists,
                                              " lists of arguments are given"));
}

// One run on each device, in a thread per device.
std::vector<backend::Buffers> ExecuteTogether(
    backend::Executable& executable, const std::vector<backend::Device>& devices,
    const std::vector<std::vector<backend::BufferPtr>>& buffers) {
  std::vector<absl::StatusOr<backend::Buffers>> outputs(devices.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    threads.emplace_back([&, i] {
      outputs[i] = executable.Execute(
          {.buffers = buffers[i], .scalars = {}, .donated = {}, .device = devices[i]});
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<backend::Buffers> values;
  for (absl::StatusOr<backend::Buffers>& output : outputs)
    values.push_back(lazy::ValueOrThrow(std::move(output)));
  return values;
}

// The devices that are named, or the first ones of the default platform.
std::vector<backend::Device> DevicesOf(const std::vector<Device>& named, std::size_t count) {
  std::vector<backend::Device> devices;
  for (const Device& device : named) devices.push_back(DeviceAccess::Unwrap(device));
  if (named.empty()) {
    const backend::Device first = DeviceAccess::Unwrap(Device());
    const absl::Span<const backend::Device> all = first.client->devices();
    devices.assign(all.begin(),
                   all.begin() + static_cast<std::ptrdiff_t>(std::min(count, all.size())));
  }
  if (devices.size() != count)
    throw lazy::StatusError(ir::InvalidArgument(
        "run_on_devices: ", count, " lists of arguments for ", devices.size(), " devices"));
  for (std::size_t i = 0; i < count; ++i) {
    if (devices[i].client != devices[0].client)
      throw lazy::StatusError(ir::InvalidArgument("run_on_devices: ", devices[0], " and ",
                                                  devices[i], " are of two platforms"));
    if (std::find(devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(i), devices[i]) !=
        devices.begin() + static_cast<std::ptrdiff_t>(i))
      throw lazy::StatusError(
          ir::InvalidArgument("run_on_devices: ", devices[i], " is given twice"));
  }
  return devices;
}

}  // namespace

std::vector<Tensor> HloModule::evaluate(const std::vector<Tensor>& arguments) const {
  return Guarded([&] {
    const Arguments given(*impl_->module, arguments);
    const backend::Device device = DeviceOf(arguments);
    const ir::ScopedFloatMode mode;
    const ir::Literal result = lazy::ValueOrThrow(hlo::Evaluate(
        *impl_->module, given.pointers(), {.transfers = &device.client->transfers(device)}));
    return ResultsOf(result, device, impl_->checks);
  });
}

std::vector<std::vector<Tensor>> HloModule::evaluate_on_devices(
    const std::vector<std::vector<Tensor>>& arguments) const {
  return Guarded([&] {
    CheckDeviceCount(*impl_->module, arguments.size());
    std::vector<Arguments> given;
    std::vector<std::vector<const ir::Literal*>> pointers;
    for (const std::vector<Tensor>& list : arguments) given.emplace_back(*impl_->module, list);
    for (const Arguments& list : given) pointers.push_back(list.pointers());
    const std::vector<ir::Literal> values =
        lazy::ValueOrThrow(hlo::EvaluateOnDevices(*impl_->module, pointers));
    std::vector<std::vector<Tensor>> results;
    for (std::size_t i = 0; i < values.size(); ++i)
      results.push_back(ResultsOf(values[i], DeviceOf(arguments[i]), impl_->checks));
    return results;
  });
}

std::vector<std::vector<Tensor>> HloModule::run_on_devices(
    const std::vector<std::vector<Tensor>>& arguments, const std::vector<Device>& named) const {
  return Guarded([&] {
    CheckDeviceCount(*impl_->module, arguments.size());
    const std::vector<backend::Device> devices = DevicesOf(named, arguments.size());
    auto options = lazy::ValueOrThrow(lazy::CompileOptionsFor(devices[0]));
    options.device_assignment.clear();
    for (const backend::Device& device : devices)
      options.device_assignment.push_back(device.ordinal);
    const backend::ExecutablePtr executable =
        lazy::ValueOrThrow(devices[0].client->Compile(impl_->module->Clone(), options));
    std::vector<HloExecutable> programs;
    for (const backend::Device& device : devices)
      programs.push_back(HloAccess::Wrap({impl_->module->name(), executable, device, impl_->checks,
                                          ParametersOf(*impl_->module)}));
    std::vector<std::vector<backend::BufferPtr>> buffers;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      CheckArguments(*impl_->module, arguments[i]);
      buffers.push_back(HloAccess::Unwrap(programs[i]).BuffersOf(arguments[i]));
    }
    std::vector<backend::Buffers> outputs = ExecuteTogether(*executable, devices, buffers);
    std::vector<std::vector<Tensor>> results(devices.size());
    for (std::size_t i = 0; i < devices.size(); ++i) {
      HloAccess::Unwrap(programs[i]).ThrowIfFailed(outputs[i]);
      outputs[i].resize(outputs[i].size() - impl_->checks.size());
      for (backend::BufferPtr& value : outputs[i])
        results[i].push_back(FromBuffer(std::move(value)));
    }
    return results;
  });
}

std::vector<backend::BufferPtr> HloExecutable::Impl::BuffersOf(
    const std::vector<Tensor>& arguments) const {
  std::vector<backend::BufferPtr> buffers;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Tensor& argument = arguments[i];
    if (!argument.defined() || DeviceAccess::Unwrap(argument.device()) != device) {
      throw lazy::StatusError(ir::InvalidArgument(
          name, ": argument ", i,
          argument.defined()
              ? ir::Str(" is on ", argument.device().name(), ", the program on ", device)
              : " is an undefined tensor"));
    }
    buffers.push_back(lazy::ToBuffer(TensorAccess::Unwrap(argument)));
  }
  return buffers;
}

backend::Buffers HloExecutable::Impl::Run(absl::Span<const backend::BufferPtr> arguments,
                                          absl::Span<const uint8_t> given_up) const {
  backend::Buffers outputs = lazy::ValueOrThrow(executable->Execute(
      {.buffers = arguments, .scalars = {}, .donated = given_up, .device = device}));
  ThrowIfFailed(outputs);
  outputs.resize(outputs.size() - checks.size());
  return outputs;
}

void HloExecutable::Impl::ThrowIfFailed(absl::Span<const backend::BufferPtr> outputs) const {
  std::vector<int64_t> found;
  for (const backend::BufferPtr& value : outputs.last(checks.size()))
    found.push_back(lazy::ValueOrThrow(device.client->ToHost(*value)).data<int64_t>()[0]);
  lazuli::ThrowIfFailed(checks, found);
}

std::vector<Tensor> HloExecutable::run(const std::vector<Tensor>& arguments,
                                       const std::vector<std::int64_t>& given_up) const {
  return Guarded([&] {
    const std::vector<backend::BufferPtr> buffers = impl_->BuffersOf(arguments);
    constexpr int64_t kHandleAndRun = 2;
    std::vector<uint8_t> donated(buffers.size());
    for (const std::int64_t i : given_up) {
      if (i < 0 || i >= static_cast<std::int64_t>(buffers.size())) {
        throw lazy::StatusError(
            ir::InvalidArgument(impl_->name, ": there is no argument ", i, " to give up"));
      }
      const auto at = static_cast<std::size_t>(i);
      donated[at] = buffers[at].use_count() == kHandleAndRun;
    }
    std::vector<Tensor> results;
    for (backend::BufferPtr& output : impl_->Run(buffers, donated))
      results.push_back(FromBuffer(std::move(output)));
    return results;
  });
}

std::string HloExecutable::to_string() const { return impl_->executable->ToString(); }

debug::ProgramStats HloExecutable::stats() const {
  const backend::ExecutableStats& stats = impl_->executable->stats();
  return {stats.kernels, stats.library_calls, stats.reorders, stats.evaluator_thunks,
          stats.temp_bytes};
}

Device HloExecutable::device() const { return DeviceAccess::Wrap(impl_->device); }

namespace {

void AppendResults(ir::Literal& literal, std::vector<CustomCallResult>& arrays) {
  if (literal.shape().IsArray()) {
    HloShape shape = ShapeOf(literal.shape());
    arrays.push_back({shape.dtype, std::move(shape.dims), literal.mutable_raw()});
  }
  for (ir::Literal& element : literal.mutable_tuple()) AppendResults(element, arrays);
}

std::string BackendConfig(const hlo::Instruction& i) {
  for (const auto& [name, value] : i.extra_attrs()) {
    if (name != "backend_config") continue;
    const bool quoted = value.size() >= 2 && (value[0] == '"' || value[0] == '\'');
    if (!quoted) return value;
    return hlo::Unescape(std::string_view(value).substr(1, value.size() - 2)).value_or(value);
  }
  return "";
}

absl::StatusOr<ir::Literal> RunCustomCall(const CustomCall& call, const hlo::Instruction& i,
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
  try {
    call(BackendConfig(i), arrays, results);
  } catch (const std::exception& error) {
    return ir::Internal(error.what());
  }
  return result;
}

void CopyBody(const hlo::Computation& source, hlo::Computation& target,
              const std::unordered_map<const hlo::Computation*, hlo::Computation*>& computations) {
  std::unordered_map<const hlo::Instruction*, hlo::Instruction*> copies;
  for (const hlo::Instruction* i : source.PostOrder()) {
    std::vector<hlo::Instruction*> operands;
    for (const hlo::Instruction* operand : i->operands()) operands.push_back(copies.at(operand));
    std::vector<hlo::Computation*> called;
    for (const hlo::Computation* callee : i->called()) called.push_back(computations.at(callee));
    hlo::Instruction* copy =
        target.Add(i->opcode(), i->shape(), operands, i->attrs(), called, i->name());
    copy->set_metadata(i->metadata());
    copy->set_sharding(i->sharding());
    copy->mutable_extra_attrs() = i->extra_attrs();
    for (const hlo::Instruction* predecessor : i->control_predecessors())
      copy->AddControlPredecessor(copies.at(predecessor));
    copies[i] = copy;
  }
  target.set_root(copies.at(source.root()));
  target.set_is_fusion(source.IsFusion());
}

// Makes the target say what the source says.
void Replace(hlo::Module& target, const hlo::Module& source) {
  const std::vector<hlo::Computation*> old = target.PostOrder();
  for (hlo::Computation* computation : old | std::views::reverse)
    target.RemoveComputation(computation);
  std::unordered_map<const hlo::Computation*, hlo::Computation*> computations;
  for (const hlo::Computation* computation : source.PostOrder()) {
    hlo::Computation* copy = target.AddComputation(computation->name());
    CopyBody(*computation, *copy, computations);
    computations[computation] = copy;
  }
  target.set_entry(computations.at(source.entry()));
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
  hlo::RegisterCustomCall(target,
                          [call = std::move(call)](const hlo::Instruction& i,
                                                   absl::Span<const ir::Literal* const> operands) {
                            return RunCustomCall(call, i, operands);
                          });
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
