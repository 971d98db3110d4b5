#include "lazuli/library.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <iterator>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_replace.h"

#include "cpp_api/src/hlo_access.h"
#include "cpp_api/src/tensor_lists.h"
#include "ir/evaluator/custom_calls.h"
#include "ir/hlo/text/attr_text.h"
#include "ir/hlo/text/parser.h"
#include "ir/hlo/verifier.h"
#include "ir/support/fork.h"
#include "ir/support/runtime.h"
#include "ir/types/leaves.h"
#include "lazuli/autograd.h"
#include "lazuli/ops.h"
#include "lazy/control/branches.h"
#include "lazy/execution/executor.h"
#include "lazy/ops/program/barrier.h"
#include "lazy/ops/program/call.h"
#include "lowering/builder/builder.h"
#include "lowering/transforms/custom_rules.h"

namespace lazuli {

// Programs of calls by what makes them, so that what derives from them is made once.
class CallPrograms {
 public:
  lazy::ProgramPtr Find(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto found = programs_.find(key);
    return found == programs_.end() ? nullptr : found->second;
  }
  lazy::ProgramPtr Add(std::string key, lazy::ProgramPtr program) {
    constexpr std::size_t kMost = 1000;  // a loop with ever other shapes needs none again
    std::unordered_map<std::string, lazy::ProgramPtr> cleared;  // released after the lock
    const std::lock_guard lock(mutex_);
    if (programs_.size() >= kMost) cleared.swap(programs_);
    return programs_.emplace(std::move(key), std::move(program)).first->second;
  }

 private:
  ir::ForkMutex mutex_;
  std::unordered_map<std::string, lazy::ProgramPtr> programs_;
};

namespace {

using IrShapes = std::vector<ir::Shape>;

// Of effects: what shows that the call is done, behind the results.
const ir::Shape& Done() {
  static const auto* const shape = new ir::Shape(ir::DType::kPred, {0});
  return *shape;
}

std::vector<HloShape> Public(absl::Span<const ir::Shape> shapes) {
  std::vector<HloShape> all;
  for (const ir::Shape& shape : shapes)
    all.push_back({Wrap(shape.dtype()), Dims(shape.dims().begin(), shape.dims().end())});
  return all;
}

IrShapes ResultShapes(std::string_view op, const std::vector<HloShape>& given, bool has_effects) {
  IrShapes shapes;
  for (const auto& [dtype, dims] : given) {
    auto shape = ir::Shape::Make(Unwrap(dtype), dims);
    if (!shape.ok())
      lazy::ThrowRecordError(op,
                             ir::Prefixed(shape.status(), ir::Str("result ", shapes.size(), ": ")));
    shapes.push_back(*std::move(shape));
  }
  if (has_effects) shapes.push_back(Done());
  return shapes;
}

ir::Shape WholeShape(const IrShapes& shapes) {
  return shapes.size() == 1 ? shapes[0] : ir::Shape::Tuple(shapes);
}

lowering::Op AddCall(lowering::Builder& b, absl::Span<const lowering::Op> operands,
                     hlo::CustomCallAttrs attrs, const std::string& config,
                     const IrShapes& results) {
  const ir::Shape shape = WholeShape(results);
  const lowering::Op call = b.Add(hlo::Opcode::kCustomCall, operands, std::move(attrs), {}, &shape);
  if (hlo::Instruction* const i = call.instruction(); i != nullptr && !config.empty()) {
    std::string quoted;
    hlo::AppendQuoted(quoted, config);
    i->mutable_extra_attrs().emplace_back("backend_config", std::move(quoted));
  }
  return call;
}

// A program of one custom-call.
lazy::ProgramPtr ProgramOfCall(const std::string& name, const IrShapes& inputs,
                               const IrShapes& results, hlo::CustomCallAttrs attrs,
                               const std::string& config) {
  auto module = std::make_shared<hlo::Module>(absl::StrReplaceAll(name, {{"::", "."}}));
  lowering::Builder b(module.get(), module->name());
  std::vector<lowering::Op> operands;
  for (const ir::Shape& shape : inputs)
    operands.push_back(b.Parameter(static_cast<int64_t>(operands.size()), shape));
  const lowering::Op call = AddCall(b, operands, std::move(attrs), config, results);
  module->set_entry(lazy::ValueOrThrow(b.Finish(call)));
  return std::make_shared<const lazy::Program>(std::move(module));
}

IrShapes InputShapes(std::string_view op, const std::vector<Tensor>& inputs) {
  IrShapes shapes;
  for (const Tensor& input : inputs) {
    if (!input.defined())
      lazy::ThrowRecordError(
          op, ir::InvalidArgument("input ", shapes.size(), " is an undefined tensor"));
    shapes.push_back(TensorAccess::Impl(input)->storage()->shape().WithDefaultLayout());
  }
  return shapes;
}

// Calls a program of one call as an op, and leaves out what shows that an effect is done.
std::vector<Tensor> RecordCall(const lazy::ProgramPtr& program, const std::vector<Tensor>& inputs,
                               lazy::CallForm form, bool has_effects) {
  form.kind = lazy::CallForm::Kind::kOp;
  std::vector<Tensor> results = Wrapped(
      lazy::Call(program, Unwrapped(inputs), DeviceAccess::Unwrap(Device()), std::move(form)));
  if (has_effects) results.pop_back();
  return results;
}

// A module of what a rule of the user's records.
lowering::CustomCallRules::Module TraceRule(
    std::string_view op, const char* rule, const IrShapes& parameters,
    const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& record) {
  try {
    const HloModule traced =
        HloModule::trace(Public(parameters), record, {}, ir::Str(rule, "_of_", op));
    return std::shared_ptr<const hlo::Module>(HloAccess::Unwrap(traced).Clone());
  } catch (const std::exception& error) {
    return ir::InvalidArgument(op, ": its ", rule, " rule: ", error.what());
  }
}

// The first `count` tensors, which are taken off.
std::vector<Tensor> TakeFirst(const Tensor*& next, std::size_t count) {
  std::vector<Tensor> taken(next, next + count);
  next += count;
  return taken;
}

IrShapes LeavesOf(const hlo::Instruction& i) {
  IrShapes shapes;
  for (const ir::Shape& leaf : ir::LeavesOf(i.shape())) shapes.push_back(leaf.WithDefaultLayout());
  return shapes;
}
IrShapes OperandShapes(const hlo::Instruction& i) {
  IrShapes shapes;
  for (const hlo::Instruction* operand : i.operands())
    shapes.push_back(operand->shape().WithDefaultLayout());
  return shapes;
}

ir::Shape WithSamples(const ir::Shape& shape, int64_t size) {
  ir::Dims dims(shape.dims().begin(), shape.dims().end());
  dims.insert(dims.begin(), size);
  return {shape.dtype(), dims};
}

void CheckResults(const std::vector<Tensor>& results, const IrShapes& samples, int64_t size) {
  bool fits = results.size() == samples.size();
  for (std::size_t k = 0; fits && k < results.size(); ++k) {
    if (!results[k].defined())
      throw lazy::StatusError(ir::InvalidArgument("result ", k, " is undefined"));
    const ir::Shape& shape = TensorAccess::Impl(results[k])->storage()->shape();
    const ir::Shape wanted = WithSamples(samples[k], size);
    if (!Compatible(shape, wanted))
      throw lazy::StatusError(ir::InvalidArgument("result ", k, " is ", shape, ", not ", wanted));
  }
  if (!fits) {
    throw lazy::StatusError(
        ir::InvalidArgument("it gives ", results.size(), " results, not ", samples.size()));
  }
}

// Whether the call has to be differentiable.
bool WantGradient(const std::vector<Tensor>& inputs) {
  const lazy::Tensors all = Unwrapped(inputs);
  return lazy::WantsGrad(std::vector<lazy::Operand>(all.begin(), all.end()));
}

void CheckName(const std::string& name) {
  const std::size_t colons = name.find("::");
  const auto is_part = [](std::string_view part) {
    return !part.empty() && std::all_of(part.begin(), part.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
    });
  };
  const std::string_view view = name;
  if (colons != std::string::npos && is_part(view.substr(0, colons)) &&
      is_part(view.substr(colons + 2)))
    return;
  throw lazy::StatusError(ir::InvalidArgument(
      "an op is named library::name, in letters, digits, _ and dots, not ", name));
}

}  // namespace

// --- ops

struct CustomOp::Impl {
  std::string name;
  Shapes shapes;
  CustomOpOptions options;
  ir::ForkMutex mutex;  // of what follows; held while no function of the user's runs
  std::vector<std::string> device_types;
  bool has_kernel = false;
  Gradient gradient = {};
  Batch batch = {};
  CallPrograms programs;

  struct Table {
    ir::ForkMutex mutex;
    std::map<std::string, std::shared_ptr<Impl>> ops;
  };
  static Table& TheTable() { return ir::Runtime::Get().Of<Table>(); }

  std::string TargetFor(const std::string& device_type) const {
    return device_type.empty() ? name : ir::Str(name, ".", device_type);
  }
  // That of the devices' own kernel, or of all. Under the mutex.
  std::string TargetOn(const Device& device) const {
    const std::string type(device.type().name);
    if (std::find(device_types.begin(), device_types.end(), type) != device_types.end())
      return TargetFor(type);
    if (has_kernel) return name;
    std::string others;
    for (const std::string& other : device_types)
      others += ir::Str(others.empty() ? "" : ", ", other);
    lazy::ThrowRecordError(name,
                           ir::Unimplemented("it has no kernel for ", type,
                                             others.empty() ? "" : ir::Str(", only for ", others)));
  }

  hlo::CustomCallAttrs Attrs(std::string target) const {
    hlo::CustomCallAttrs attrs;
    attrs.custom_call_target = std::move(target);
    attrs.custom_call_has_side_effect = options.has_effects;
    return attrs;
  }

  std::vector<Tensor> GradientsOf(const std::vector<Tensor>& inputs,
                                  const std::vector<Tensor>& results,
                                  const std::vector<Tensor>& cotangents,
                                  const std::string& config) const;
  HloModule GradientModule(const lazy::ProgramPtr& program, const std::string& config) const;
  lowering::CustomCallRules Rules() const;
  void SetRules() const;
  lazy::ProgramPtr ProgramFor(const std::vector<Tensor>& inputs, const std::string& config);
};

// A gradient for each input of floats, in their order.
std::vector<Tensor> CustomOp::Impl::GradientsOf(const std::vector<Tensor>& inputs,
                                                const std::vector<Tensor>& results,
                                                const std::vector<Tensor>& cotangents,
                                                const std::string& config) const {
  std::vector<Tensor> made = gradient(inputs, results, cotangents, config), gradients;
  if (made.size() != inputs.size()) {
    throw lazy::StatusError(ir::InvalidArgument(name, ": its gradient rule gives ", made.size(),
                                                " gradients for ", inputs.size(), " inputs"));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ir::Shape& shape = TensorAccess::Impl(inputs[i])->storage()->shape();
    if (!lazy::IsDifferentiable(shape)) continue;
    if (!made[i].defined()) made[i] = zeros_like(inputs[i]);
    const ir::Shape& given = TensorAccess::Impl(made[i])->storage()->shape();
    if (!Compatible(given, shape)) {
      throw lazy::StatusError(ir::InvalidArgument(name, ": its gradient rule gives ", given,
                                                  " for input ", i, ", which is ", shape));
    }
    gradients.push_back(std::move(made[i]));
  }
  return gradients;
}

// Of a call: takes inputs and cotangents, and computes the results again if the rule wants them.
HloModule CustomOp::Impl::GradientModule(const lazy::ProgramPtr& program,
                                         const std::string& config) const {
  IrShapes parameters = program->parameters();
  for (const ir::Shape& result : program->results()) {
    if (lazy::IsDifferentiable(result)) parameters.push_back(result);
  }
  const auto record = [&](const std::vector<Tensor>& given) {
    const NoGrad no_grad;
    const Tensor* next = given.data();
    const std::vector<Tensor> inputs = TakeFirst(next, program->parameters().size());
    std::vector<Tensor> results, cotangents;
    if (!options.has_effects)
      results = RecordCall(program, inputs, {.name = name, .config = config}, false);
    for (std::size_t i = 0; i + (options.has_effects ? 1 : 0) < program->results().size(); ++i)
      cotangents.push_back(lazy::IsDifferentiable(program->results()[i]) ? *next++ : Tensor());
    return GradientsOf(inputs, results, cotangents, config);
  };
  return HloModule::trace(Public(parameters), record, {}, ir::Str("gradient_of_", name));
}

// Those of instructions, which may be in any module. Ops live as long as the process.
lowering::CustomCallRules CustomOp::Impl::Rules() const {
  lowering::CustomCallRules rules;
  if (gradient) {
    rules.cotangent = [this](const hlo::Instruction& i) {
      const std::string config = BackendConfig(i);
      const IrShapes of_inputs = OperandShapes(i), of_results = LeavesOf(i);
      IrShapes parameters = of_inputs;
      parameters.insert(parameters.end(), of_results.begin(), of_results.end());
      std::copy_if(of_results.begin(), of_results.end(), std::back_inserter(parameters),
                   lazy::IsDifferentiable);
      return TraceRule(name, "gradient", parameters, [&](const std::vector<Tensor>& given) {
        const NoGrad no_grad;
        const Tensor* next = given.data();
        const std::vector<Tensor> inputs = TakeFirst(next, of_inputs.size());
        std::vector<Tensor> results = TakeFirst(next, of_results.size()), cotangents;
        if (options.has_effects) results.pop_back();
        for (std::size_t k = 0; k < results.size(); ++k)
          cotangents.push_back(lazy::IsDifferentiable(of_results[k]) ? *next++ : Tensor());
        if (options.has_effects) results.clear();
        return GradientsOf(inputs, results, cotangents, config);
      });
    };
  }
  if (batch) {
    rules.batch = [this](const hlo::Instruction& i, const std::vector<bool>& batched,
                         int64_t size) {
      const std::string config = BackendConfig(i);
      IrShapes parameters = OperandShapes(i), expected = LeavesOf(i);
      for (std::size_t k = 0; k < parameters.size(); ++k) {
        if (batched[k]) parameters[k] = WithSamples(parameters[k], size);
      }
      return TraceRule(name, "batch", parameters, [&](const std::vector<Tensor>& inputs) {
        std::vector<Tensor> results = batch(inputs, batched, size, config);
        if (options.has_effects) results.push_back(zeros({size, 0}, DType::kPred));
        CheckResults(results, expected, size);
        return results;
      });
    };
  }
  return rules;
}

void CustomOp::Impl::SetRules() const {
  if (has_kernel) lowering::RegisterCustomCallRules(name, Rules());
  for (const std::string& type : device_types)
    lowering::RegisterCustomCallRules(TargetFor(type), Rules());
}

lazy::ProgramPtr CustomOp::Impl::ProgramFor(const std::vector<Tensor>& inputs,
                                            const std::string& config) {
  const IrShapes parameters = InputShapes(name, inputs);
  std::string target;
  bool differentiable = false;
  {
    const std::lock_guard lock(mutex);
    target = TargetOn(inputs.empty() ? Device() : inputs[0].device());
    differentiable = gradient != nullptr && WantGradient(inputs);
  }
  std::string key = ir::Str(target, differentiable ? " differentiable " : " ", config);
  for (const ir::Shape& shape : parameters) key += shape.ToString();
  if (lazy::ProgramPtr found = programs.Find(key)) return found;
  const IrShapes results =
      ResultShapes(name, shapes(Public(parameters), config), options.has_effects);
  lazy::ProgramPtr program = ProgramOfCall(name, parameters, results, Attrs(target), config);
  if (differentiable) {
    program = lazy::ValueOrThrow(
        program->WithGradient(HloAccess::ProgramOf(GradientModule(program, config))));
  }
  return programs.Add(std::move(key), std::move(program));
}

CustomOp::CustomOp(const std::string& name, Shapes shapes, const CustomOpOptions& options)
    : impl_(std::make_shared<Impl>()) {
  impl_->name = name;
  impl_->shapes = std::move(shapes);
  impl_->options = options;
  Guarded([&] {
    CheckName(name);
    Impl::Table& table = Impl::TheTable();
    const std::lock_guard lock(table.mutex);
    if (!table.ops.emplace(name, impl_).second)
      throw lazy::StatusError(ir::InvalidArgument("there is an op named ", name, " already"));
  });
}

CustomOp CustomOp::find(const std::string& name) {
  return Guarded([&] {
    Impl::Table& table = Impl::TheTable();
    const std::lock_guard lock(table.mutex);
    const auto found = table.ops.find(name);
    if (found == table.ops.end())
      throw lazy::StatusError(ir::NotFound("there is no op named ", name));
    return CustomOp(found->second);
  });
}

const std::string& CustomOp::name() const { return impl_->name; }

const CustomOp& CustomOp::kernel(Kernel kernel, const std::string& device_type) const {
  Guarded([&] {
    const std::lock_guard lock(impl_->mutex);
    auto& types = impl_->device_types;
    const bool is_new = device_type.empty()
                            ? !std::exchange(impl_->has_kernel, true)
                            : std::find(types.begin(), types.end(), device_type) == types.end();
    if (!is_new) {
      throw lazy::StatusError(ir::InvalidArgument(
          impl_->name, ": it has a kernel",
          device_type.empty() ? "" : ir::Str(" for ", device_type), " already"));
    }
    if (!device_type.empty()) types.push_back(device_type);
    hlo::RegisterCustomCall(impl_->TargetFor(device_type),
                            HostCall(std::move(kernel), impl_->options.has_effects));
    impl_->SetRules();
  });
  return *this;
}

namespace {
template <class F>
void SetOnce(const std::string& op, const char* what, F& rule, F given) {
  if (rule) throw lazy::StatusError(ir::InvalidArgument(op, ": it has a ", what, " rule already"));
  rule = std::move(given);
}
}  // namespace

const CustomOp& CustomOp::gradient(Gradient gradient) const {
  Guarded([&] {
    const std::lock_guard lock(impl_->mutex);
    SetOnce(impl_->name, "gradient", impl_->gradient, std::move(gradient));
    impl_->SetRules();
  });
  return *this;
}

const CustomOp& CustomOp::batch(Batch batch) const {
  Guarded([&] {
    const std::lock_guard lock(impl_->mutex);
    SetOnce(impl_->name, "batch", impl_->batch, std::move(batch));
    impl_->SetRules();
  });
  return *this;
}

std::vector<Tensor> CustomOp::operator()(const std::vector<Tensor>& inputs,
                                         const std::string& config, SourceLocation loc) const {
  Initialize();
  return Call(loc, [&] {
    return RecordCall(impl_->ProgramFor(inputs, config), inputs,
                      {.name = impl_->name, .config = config}, impl_->options.has_effects);
  });
}

// --- callbacks

namespace {

// A call for all samples at once.
lowering::CustomCallRules::Module BatchCallback(const hlo::Instruction& i,
                                                const std::vector<bool>& batched, int64_t size,
                                                CallbackBatch how) {
  auto module = std::make_shared<hlo::Module>("batch_of_callback");
  lowering::Builder b(module.get(), module->name());
  std::vector<lowering::Op> operands;
  IrShapes results = LeavesOf(i);
  for (const ir::Shape& shape : OperandShapes(i)) {
    const std::size_t k = operands.size();
    lowering::Op x =
        b.Parameter(static_cast<int64_t>(k), batched[k] ? WithSamples(shape, size) : shape);
    if (!batched[k] && how == CallbackBatch::kExpandDims)
      x = b.Reshape(x, WithSamples(shape, 1).dims());
    else if (!batched[k])
      x = b.BroadcastTo(x, WithSamples(shape, size).dims());
    operands.push_back(x);
  }
  for (ir::Shape& shape : results) shape = WithSamples(shape, size);
  const lowering::Op call = AddCall(b, operands, i.attrs_as<hlo::CustomCallAttrs>(), "", results);
  LAZULI_ASSIGN_OR_RETURN(hlo::Computation * entry,
                          b.Finish(results.size() == 1 ? b.Tuple({call}) : call));
  module->set_entry(entry);
  return std::shared_ptr<const hlo::Module>(std::move(module));
}

lowering::CustomCallRules RulesOf(const CallbackOptions& options) {
  lowering::CustomCallRules rules;
  if (options.batch == CallbackBatch::kSequential) return rules;
  rules.batch = [name = options.name, how = options.batch, ordered = options.ordered](
                    const hlo::Instruction& i, const std::vector<bool>& batched,
                    int64_t size) -> lowering::CustomCallRules::Module {
    if (how == CallbackBatch::kError)
      return ir::Unimplemented("vmap: ", name,
                               ordered ? " is ordered, and samples have no order"
                                       : " does not say how it is called for several samples");
    return BatchCallback(i, batched, size, how);
  };
  return rules;
}

}  // namespace

struct Callback::Impl : lowering::RuledFunction {
  Impl(Function function, const CallbackOptions& given)
      : RuledFunction(
            HostCall(
                [function = std::move(function)](
                    std::string_view, const std::vector<CustomCallArray>& arguments,
                    const std::vector<CustomCallResult>& results) { function(arguments, results); },
                given.has_effects || given.ordered),
            RulesOf(given)),
        options(given),
        number(++made) {
    options.has_effects |= options.ordered;
  }
  CallbackOptions options;
  const uint64_t number;
  static inline std::atomic<uint64_t> made{0};
};

Callback::Callback(Function function, const CallbackOptions& options)
    : impl_(std::make_shared<const Impl>(std::move(function), options)) {}

std::vector<Tensor> Callback::operator()(const std::vector<HloShape>& results,
                                         const std::vector<Tensor>& arguments,
                                         SourceLocation loc) const {
  Initialize();
  return Call(loc, [&] {
    const CallbackOptions& options = impl_->options;
    hlo::CustomCallAttrs attrs;
    attrs.custom_call_target = ir::Str(options.name, ".", impl_->number);
    attrs.custom_call_has_side_effect = options.has_effects;
    attrs.host = impl_;
    const lazy::ProgramPtr program = ProgramOfCall(
        options.name, InputShapes(options.name, arguments),
        ResultShapes(options.name, results, options.has_effects), std::move(attrs), "");
    return RecordCall(program, arguments, {.name = options.name, .ordered = options.ordered},
                      options.has_effects);
  });
}

std::weak_ptr<const void> Callback::weak() const { return impl_; }
std::optional<Callback> Callback::locked(const std::weak_ptr<const void>& weak) {
  const std::shared_ptr<const void> impl = weak.lock();
  if (impl == nullptr) return std::nullopt;
  return Callback(std::static_pointer_cast<const Impl>(impl));
}

Device DeviceOfRun() {
  const backend::Device device = lazy::Executor::DeviceOfThread();
  return device.client == nullptr ? Device() : DeviceAccess::Wrap(device);
}

// --- instructions, and calls of functions by names

namespace {

// The other opcodes are leaves, tuples, tokens, sizes that only a run knows, and places of devices.
bool IsOpOfArrays(hlo::Opcode opcode) {
  using enum hlo::Opcode;
  constexpr hlo::Opcode kOthers[] = {
      kParameter,     kConstant,  kTuple,          kGetTupleElement,  kAfterAll,
      kAddDependency, kBitcast,   kDynamicReshape, kGetDimensionSize, kSetDimensionSize,
      kDomain,        kReplicaId, kPartitionId};
  const hlo::OpcodeTraits& traits = hlo::Traits(opcode);
  return traits.regions == 0 && !traits.side_effects && !traits.exchanges && !traits.barrier &&
         std::find(std::begin(kOthers), std::end(kOthers), opcode) == std::end(kOthers);
}

// The error without the opcode's name in front, which the caller says.
absl::Status WithoutOpcode(const absl::Status& status, std::string_view opcode) {
  std::string message(status.message());
  const std::string prefix = ir::Str(opcode, ": ");
  while (message.starts_with(prefix)) message.erase(0, prefix.size());
  return absl::Status(status.code(), message);
}

lazy::ProgramPtr InstructionProgram(const std::string& name, hlo::Opcode opcode,
                                    const IrShapes& operands, const HloAttributes& attributes,
                                    const std::optional<HloShape>& result) {
  const auto check = [&](const absl::Status& status) {
    if (!status.ok()) lazy::ThrowRecordError(name, WithoutOpcode(status, hlo::OpcodeText(opcode)));
  };
  auto attrs = hlo::ParseAttrs(opcode, attributes);
  check(attrs.status());
  std::optional<ir::Shape> declared;
  if (result) declared = ResultShapes(name, {*result}, false)[0];
  auto module = std::make_shared<hlo::Module>(std::string(hlo::OpcodeText(opcode)));
  lowering::Builder b(module.get(), module->name());
  std::vector<lowering::Op> parameters;
  for (const ir::Shape& shape : operands)
    parameters.push_back(b.Parameter(static_cast<int64_t>(parameters.size()), shape));
  const lowering::Op made =
      b.Add(opcode, parameters, *std::move(attrs), {}, declared ? &*declared : nullptr);
  auto entry = b.Finish(made);
  check(entry.status());
  module->set_entry(*entry);
  check(hlo::Verify(*module));
  return std::make_shared<const lazy::Program>(std::move(module));
}

}  // namespace

std::vector<HloOpcode> hlo_opcodes() {
  std::vector<HloOpcode> all;
  for (int i = 0; i < hlo::NumOpcodes(); ++i) {
    const auto opcode = static_cast<hlo::Opcode>(i);
    if (!IsOpOfArrays(opcode)) continue;
    HloOpcode made{.name = std::string(hlo::OpcodeText(opcode)),
                   .operands = hlo::Traits(opcode).arity,
                   .attributes = {}};
    for (const auto& [name, required] : hlo::AttributesOf(opcode))
      made.attributes.push_back(ir::Str(name, required ? "!" : ""));
    all.push_back(std::move(made));
  }
  return all;
}

std::vector<Tensor> hlo_op(const std::string& opcode, const std::vector<Tensor>& operands,
                           const HloAttributes& attributes, const std::optional<HloShape>& result,
                           SourceLocation loc) {
  Initialize();
  return Call(loc, [&] {
    const std::string name = ir::Str("hlo::", opcode);
    const std::optional<hlo::Opcode> parsed = hlo::ParseOpcode(opcode);
    if (!parsed || !IsOpOfArrays(*parsed))
      throw lazy::StatusError(
          ir::InvalidArgument("hlo_op: there is no instruction of arrays ", opcode));
    std::string config;
    for (const auto& [attribute, value] : attributes)
      config += ir::Str(config.empty() ? "" : ", ", attribute, "=", value);
    const IrShapes shapes = InputShapes(name, operands);
    std::string key = ir::Str(opcode, " ", config);
    for (const ir::Shape& shape : shapes) key += shape.ToString();
    if (result) key += ResultShapes(name, {*result}, false)[0].ToString();
    struct InstructionPrograms {
      CallPrograms programs;
    };
    CallPrograms& programs = ir::Runtime::Get().Of<InstructionPrograms>().programs;
    lazy::ProgramPtr program = programs.Find(key);
    if (program == nullptr)
      program = programs.Add(std::move(key),
                             InstructionProgram(name, *parsed, shapes, attributes, result));
    return RecordCall(program, operands, {.name = name, .config = config}, false);
  });
}

std::vector<Tensor> composite(
    const std::string& name,
    const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& function,
    const std::vector<Tensor>& arguments, SourceLocation loc) {
  Initialize();
  return Call(loc, [&] {
    if (name.empty()) throw lazy::StatusError(ir::InvalidArgument("composite: it has no name"));
    InputShapes(name, arguments);  // all are defined
    const lazy::Tensors operands = Unwrapped(arguments);
    const auto record = [&](absl::Span<const lazy::Tensor> given) {
      const lazy::SiteOverride none(ir::kNoSite);
      const std::vector<Tensor> made = function(Wrapped(given));
      InputShapes(name, made);
      return Unwrapped(made);
    };
    const backend::Device device =
        operands.empty() ? DeviceAccess::Unwrap(Device()) : operands[0].device();
    return Wrapped(lazy::Composite(name, operands, device, record));
  });
}

std::vector<Tensor> optimization_barrier(const std::vector<Tensor>& tensors, SourceLocation loc) {
  Initialize();
  return Call(loc, [&] {
    InputShapes("optimization_barrier", tensors);
    return Wrapped(lazy::Barrier(Unwrapped(tensors), {}));
  });
}

// --- order

struct After::Impl {
  explicit Impl(lazy::Tensors tensors) : scope(std::move(tensors)) {}
  lazy::AfterScope scope;
};

After::After(const std::vector<Tensor>& tensors) {
  Guarded([&] {
    lazy::Tensors all;
    for (const Tensor& tensor : tensors) {
      if (!tensor.defined())
        throw lazy::StatusError(ir::InvalidArgument("after: a tensor is undefined"));
      all.push_back(TensorAccess::Unwrap(tensor));
    }
    impl_ = std::make_unique<Impl>(std::move(all));
  });
}
After::~After() = default;

}  // namespace lazuli
