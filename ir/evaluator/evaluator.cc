#include "ir/evaluator/evaluator.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <type_traits>

#include "ir/evaluator/custom_calls.h"
#include "ir/evaluator/dynamic_sizes.h"
#include "ir/evaluator/internal.h"
#include "ir/hlo/dense_map.h"
#include "ir/support/data_memory.h"
#include "ir/support/error_place.h"
#include "ir/support/span.h"
#include "ir/support/str.h"
#include "ir/support/thread_local.h"

namespace lazuli::hlo {

// The instructions of a computation in order. Slots hold values; a value is dropped after its last
// use.
struct Evaluation::ComputationPlan {
  struct PlannedInstruction {
    const Instruction* instruction;
    absl::InlinedVector<int, 2> operands;  // steps
    absl::InlinedVector<int, 2> dead;      // steps whose values nobody needs afterwards
  };
  std::vector<PlannedInstruction> steps;
  int root = 0;

  class ActivationStack;
};

namespace {

// Regions (a reduction's, a sort's) within regions take stack: 256 KiB are enough for so many.
constexpr int kMaxDepth = 32;
LAZULI_FAST_THREAD_LOCAL int depth = 0;

bool IsControl(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kWhile:
    case Opcode::kConditional:
    case Opcode::kCall:
    case Opcode::kFusion:
      return true;
    default:
      return false;
  }
}

// A pred picks branch 0 if true; an index out of range the last branch.
std::size_t BranchOf(const Instruction& conditional, const Literal& choice) {
  const auto branches = static_cast<int64_t>(conditional.called().size());
  int64_t branch = IntegerAt(choice, 0);
  if (choice.shape().dtype() == DType::kPred) branch = 1 - branch;
  return static_cast<std::size_t>(branch < 0 || branch >= branches ? branches - 1 : branch);
}

}  // namespace

// Runs computations. Calls, conditionals and loops within them are further activations in a list,
// so that nests of them take no stack.
class Evaluation::ComputationPlan::ActivationStack {
 public:
  explicit ActivationStack(Evaluation& evaluation) : evaluation_(evaluation) { ++depth; }
  ~ActivationStack() { --depth; }
  ActivationStack(const ActivationStack&) = delete;
  ActivationStack& operator=(const ActivationStack&) = delete;

  absl::StatusOr<Literal> Run(const Computation& computation, Operands arguments) {
    std::vector<Literal> values;
    values.reserve(arguments.size());
    for (const Literal* argument : arguments) values.push_back(*argument);
    LAZULI_RETURN_IF_ERROR(Enter(nullptr, computation, std::move(values)));
    return Finish();
  }
  absl::StatusOr<Literal> Run(const Instruction& control, Operands operands) {
    LAZULI_RETURN_IF_ERROR(Start(control, operands));
    return Finish();
  }

 private:
  // A computation that is running, or that waits for the value of the activation after it.
  struct Activation {
    const Instruction* control;  // the call, conditional or while that runs it; null if none does
    const ComputationPlan* plan;
    std::vector<Literal> arguments;
    bool is_condition = false;      // of a while
    std::vector<Literal> values{};  // by step
    std::size_t step = 0;

    void Set(Literal value) {
      values[step] = std::move(value);
      for (const int dead : plan->steps[step].dead)
        values[static_cast<std::size_t>(dead)] = Literal();
      ++step;
    }
  };

  absl::Status Enter(const Instruction* control, const Computation& computation,
                     std::vector<Literal> arguments);
  absl::Status Start(const Instruction& control, Operands operands);
  absl::StatusOr<bool> GoOn(Activation& done, Literal& value);
  absl::Status Step();
  absl::StatusOr<Literal> Finish();

  Evaluation& evaluation_;
  std::vector<Activation> running_;
};

absl::Status Evaluation::ComputationPlan::ActivationStack::Enter(const Instruction* control,
                                                                 const Computation& computation,
                                                                 std::vector<Literal> arguments) {
  if (arguments.size() != computation.parameters().size()) {
    return InvalidArgument(computation.name(), " takes ", computation.parameters().size(),
                           " arguments, not ", arguments.size());
  }
  for (std::size_t number = 0; number < arguments.size(); ++number) {
    const Shape& expected = computation.parameters()[number]->shape();
    if (!FitsBounds(arguments[number].shape(), expected)) {
      return InvalidArgument(computation.name(), ": argument ", number, " is ",
                             arguments[number].shape(), ", not ", expected);
    }
  }
  running_.push_back({control, &evaluation_.PlanOf(computation), std::move(arguments)});
  running_.back().values.resize(running_.back().plan->steps.size());
  return absl::OkStatus();
}

absl::Status Evaluation::ComputationPlan::ActivationStack::Start(const Instruction& control,
                                                                 Operands operands) {
  std::size_t callee = 0;
  std::vector<Literal> arguments;
  if (control.opcode() == Opcode::kConditional) {
    callee = BranchOf(control, *operands[0]);
    arguments.push_back(*operands[callee + 1]);
  } else {
    for (const Literal* operand : operands) arguments.push_back(*operand);
  }
  LAZULI_RETURN_IF_ERROR(Enter(&control, *control.called()[callee], std::move(arguments)));
  running_.back().is_condition = control.opcode() == Opcode::kWhile;
  return absl::OkStatus();
}

// What comes after a part of a while loop: true if its next part is running now, else `value` is
// the loop's.
absl::StatusOr<bool> Evaluation::ComputationPlan::ActivationStack::GoOn(Activation& done,
                                                                        Literal& value) {
  const Instruction& control = *done.control;
  if (control.opcode() != Opcode::kWhile) return false;
  if (!done.is_condition) {
    LAZULI_RETURN_IF_ERROR(Start(control, {&value}));
    return true;
  }
  if (value.data<bool>()[0]) {
    LAZULI_RETURN_IF_ERROR(Enter(&control, *control.called()[1], std::move(done.arguments)));
    return true;
  }
  value = std::move(done.arguments[0]);
  return false;
}

// The next step of the newest activation.
absl::Status Evaluation::ComputationPlan::ActivationStack::Step() {
  Activation& now = running_.back();
  const ComputationPlan::PlannedInstruction& step = now.plan->steps[now.step];
  const Instruction& instruction = *step.instruction;
  if (instruction.opcode() == Opcode::kParameter) {
    now.Set(now.arguments[static_cast<std::size_t>(instruction.parameter_number())]);
    return absl::OkStatus();
  }
  absl::InlinedVector<const Literal*, 4> operands;
  for (const int operand : step.operands)
    operands.push_back(&now.values[static_cast<std::size_t>(operand)]);
  if (IsControl(instruction) && !HasSmallOperand(instruction, operands))
    return AtInstruction(Start(instruction, operands), instruction);
  LAZULI_ASSIGN_OR_RETURN(Literal value, evaluation_.Run(instruction, operands));
  now.Set(std::move(value));
  return absl::OkStatus();
}

// Runs the activations to the end; the value of the first.
absl::StatusOr<Literal> Evaluation::ComputationPlan::ActivationStack::Finish() {
  if (depth > kMaxDepth) return ResourceExhausted("more than ", kMaxDepth, " regions in regions");
  while (true) {
    if (running_.back().step < running_.back().plan->steps.size()) {
      LAZULI_RETURN_IF_ERROR(Step());
      continue;
    }
    Activation done = std::move(running_.back());
    running_.pop_back();
    Literal value = std::move(done.values[static_cast<std::size_t>(done.plan->root)]);
    if (done.control == nullptr) return value;
    const absl::StatusOr<bool> goes_on = GoOn(done, value);
    if (!goes_on.ok())
      return running_.empty() ? goes_on.status() : AtInstruction(goes_on.status(), *done.control);
    if (*goes_on) continue;
    if (running_.empty()) return value;
    const Shape& declared = done.control->shape();
    running_.back().Set(Compatible(value.shape(), declared) ? std::move(value)
                                                            : PadToDeclared(value, declared));
  }
}

Evaluation::Evaluation(const EvaluateOptions& options, bool traced)
    : options_(options), traced_(traced) {}
Evaluation::~Evaluation() = default;

const Evaluation::ComputationPlan& Evaluation::PlanOf(const Computation& computation) {
  std::unique_ptr<ComputationPlan>& plan = plans_[&computation];
  if (plan != nullptr) return *plan;
  plan = std::make_unique<ComputationPlan>();
  DenseMap<int> step_of(computation);
  for (const Instruction* i : computation.PostOrder()) {
    step_of[i] = static_cast<int>(plan->steps.size());
    plan->steps.push_back({i, {}, {}});
    for (const Instruction* operand : i->operands())
      plan->steps.back().operands.push_back(step_of[operand]);
  }
  plan->root = step_of[computation.root()];
  std::vector<bool> needed(plan->steps.size(), false);
  needed[static_cast<std::size_t>(plan->root)] = true;
  for (std::size_t s = plan->steps.size(); s-- > 0;) {
    ComputationPlan::PlannedInstruction& step = plan->steps[s];
    if (!needed[s]) step.dead.push_back(static_cast<int>(s));  // its value has no use at all
    needed[s] = true;
    for (int operand : step.operands) {
      if (needed[static_cast<std::size_t>(operand)]) continue;
      needed[static_cast<std::size_t>(operand)] = true;
      step.dead.push_back(operand);
    }
  }
  return *plan;
}

absl::StatusOr<Literal> Evaluation::Run(const Computation& computation, Operands arguments) {
  return ComputationPlan::ActivationStack(*this).Run(computation, arguments);
}

namespace {

// The start does all the work: ((operands), result, context words).
absl::StatusOr<Literal> EvaluateAsyncStart(const Instruction& instruction, Operands operands,
                                           Evaluation& evaluation) {
  LAZULI_ASSIGN_OR_RETURN(Literal result, evaluation.Run(*instruction.to_apply(), operands));
  std::vector<Literal> given;
  for (const Literal* operand : operands) given.push_back(*operand);
  std::vector<Literal> elements = {Literal::Tuple(std::move(given)), std::move(result)};
  const std::vector<Shape>& shapes = instruction.shape().tuple();
  for (std::size_t i = 2; i < shapes.size(); ++i) elements.emplace_back(shapes[i]);
  return Literal::Tuple(std::move(elements));
}

absl::StatusOr<Literal> EvaluateTransfer(const Instruction& instruction, Operands operands,
                                         Evaluation& evaluation) {
  HostTransfers* const transfers = evaluation.options().transfers;
  if (transfers == nullptr) return Unimplemented("nobody is at the other end of the transfer");
  if (instruction.opcode() == Opcode::kOutfeed) {
    transfers->PushOutfeed(*operands[0]);
    return Literal(Shape::Token());
  }
  LAZULI_ASSIGN_OR_RETURN(Literal value, transfers->PopInfeed(instruction.shape().tuple()[0]));
  return Literal::Tuple({std::move(value), Literal(Shape::Token())});
}

absl::StatusOr<Literal> EvaluateCustomCall(const Instruction& instruction, Operands operands) {
  const auto& attrs = instruction.attrs_as<CustomCallAttrs>();
  const std::string& target = attrs.custom_call_target;
  const CustomCall call = attrs.host != nullptr ? attrs.host->call : FindCustomCall(target);
  if (!call) return Unimplemented("no custom call named \"", target, "\" is registered");
  LAZULI_ASSIGN_OR_RETURN(Literal result, call(instruction, operands));
  if (!Compatible(result.shape(), instruction.shape())) {
    return Internal("custom call \"", target, "\" returned ", result.shape(), ", not ",
                    instruction.shape());
  }
  return result;
}

// What has no family.
absl::StatusOr<Literal> EvaluateConvert(const Instruction& instruction, Operands operands) {
  return operands[0]->Converted(instruction.shape().dtype());
}
absl::StatusOr<Literal> EvaluateFirstOperand(const Instruction&, Operands operands) {
  return *operands[0];
}
absl::StatusOr<Literal> EvaluateFirstElement(const Instruction&, Operands operands) {
  return operands[0]->tuple()[0];
}
absl::StatusOr<Literal> EvaluateSecondElement(const Instruction&, Operands operands) {
  return operands[0]->tuple()[1];
}
absl::StatusOr<Literal> EvaluateParameter(const Instruction&) {
  return Internal("a parameter has no value of its own");
}
absl::StatusOr<Literal> EvaluateConstant(const Instruction& instruction) {
  return instruction.literal();
}
absl::StatusOr<Literal> EvaluateTuple(const Instruction&, Operands operands) {
  std::vector<Literal> elements;
  for (const Literal* operand : operands) elements.push_back(*operand);
  return Literal::Tuple(std::move(elements));
}
absl::StatusOr<Literal> EvaluateGetTupleElement(const Instruction& instruction, Operands operands) {
  return operands[0]
      ->tuple()[static_cast<std::size_t>(instruction.attrs_as<TupleIndexAttrs>().index)];
}
absl::StatusOr<Literal> EvaluateAfterAll(const Instruction&) { return Literal(Shape::Token()); }
absl::StatusOr<Literal> EvaluateControlFlow(const Instruction&) {
  return Internal("control flow is the machine's");
}
absl::StatusOr<Literal> EvaluateUnconnected(const Instruction&) {
  return Unimplemented("not evaluated; nobody is at the other end of the transfer");
}

// A function of the evaluator with the parameters that it leaves out.
using Evaluator = absl::StatusOr<Literal>(const Instruction&, Operands, Evaluation&);
template <auto& function>
absl::StatusOr<Literal> Uniform(const Instruction& instruction, Operands operands,
                                Evaluation& evaluation) {
  if constexpr (std::is_invocable_v<decltype(function), const Instruction&>)
    return function(instruction);
  else if constexpr (std::is_invocable_v<decltype(function), const Instruction&, Operands>)
    return function(instruction, operands);
  else
    return function(instruction, operands, evaluation);
}

constexpr Evaluator* kEvaluators[] = {
#define LAZULI_OPCODE(name, text, arity, flags, regions, attrs, infer, evaluate, ...) \
  Uniform<evaluate>,
#include "ir/hlo/opcode.def"
#undef LAZULI_OPCODE
};

absl::StatusOr<Literal> Dispatch(const Instruction& instruction, Operands operands,
                                 Evaluation& evaluation) {
  return kEvaluators[static_cast<std::size_t>(instruction.opcode())](instruction, operands,
                                                                     evaluation);
}

}  // namespace

absl::StatusOr<Literal> Evaluation::RunUnlocated(const Instruction& instruction,
                                                 Operands operands) try {
  const auto dispatch = [this](const Instruction& i, Operands values) {
    return IsControl(i) ? ComputationPlan::ActivationStack(*this).Run(i, values)
                        : Dispatch(i, values, *this);
  };
  absl::StatusOr<Literal> result = HasSmallOperand(instruction, operands)
                                       ? EvaluateSmall(instruction, operands, dispatch)
                                       : dispatch(instruction, operands);
  if (result.ok() && !Compatible(result->shape(), instruction.shape()))
    return PadToDeclared(*result, instruction.shape());
  return result;
} catch (const ir::NoDataMemory& error) {
  return error.status();
}

namespace {

const ir::SpanLabel& SpanLabelOf(const Instruction& instruction) {
  const Metadata& metadata = instruction.metadata();
  ir::SpanLabel label{.kind = ir::SpanKind::kThunk,
                      .name = std::string(instruction.name()),
                      .detail = "evaluate",
                      .op = metadata.op_type,
                      .scope = metadata.op_name};
  if (label.op.empty()) label.op = OpcodeText(instruction.opcode());
  const std::string place = metadata.place();
  label.source = place.substr(place.rfind('/') + 1);
  return ir::KeepLabel(std::move(label));
}

}  // namespace

absl::StatusOr<Literal> Evaluation::Run(const Instruction& instruction, Operands operands) {
  std::optional<ir::TraceSpan> span;
  if (traced_ && ir::IsTracing()) [[unlikely]]
    span.emplace(SpanLabelOf(instruction));
  absl::StatusOr<Literal> result = RunUnlocated(instruction, operands);
  return result.ok() ? std::move(result) : AtInstruction(result.status(), instruction);
}

absl::Status AtInstruction(const absl::Status& status, const Instruction& instruction) {
  if (status.ok()) return status;
  const Metadata& metadata = instruction.metadata();
  const std::string name = !metadata.op_name.empty() ? metadata.op_name
                           : !metadata.op_type.empty()
                               ? metadata.op_type
                               : Str(OpcodeText(instruction.opcode()), " %", instruction.name());
  return ir::AddPlace(status, name, metadata.place());
}

absl::StatusOr<Literal> Evaluate(const Module& module, absl::Span<const Literal* const> arguments,
                                 const EvaluateOptions& options) {
  const Computation& entry = *module.entry();
  LAZULI_ASSIGN_OR_RETURN(const Literal result,
                          Evaluation(options, /*traced=*/true).Run(entry, arguments));
  return PadToBounds(result, entry.root()->shape());
}

absl::StatusOr<Literal> Evaluate(const Computation& computation,
                                 absl::Span<const Literal* const> arguments,
                                 const EvaluateOptions& options) {
  LAZULI_ASSIGN_OR_RETURN(const Literal result, Evaluation(options).Run(computation, arguments));
  return PadToBounds(result, computation.root()->shape());
}

absl::StatusOr<Literal> EvaluateInstruction(const Instruction& instruction,
                                            absl::Span<const Literal* const> operands,
                                            const EvaluateOptions& options) {
  LAZULI_ASSIGN_OR_RETURN(const Literal result, Evaluation(options).Run(instruction, operands));
  return PadToBounds(result, instruction.shape());
}

Lone::Lone(Opcode opcode, const Shape& shape, Operands operands, Attrs attrs,
           absl::Span<Computation* const> called) {
  Computation* const computation = module_.AddComputation("lone");
  std::vector<Instruction*> parameters;
  for (const Literal* operand : operands) {
    const auto number = static_cast<int64_t>(parameters.size());
    parameters.push_back(computation->AddParameter(number, operand->shape()));
  }
  instruction_ = computation->Add(opcode, shape, parameters, std::move(attrs), called);
}

int64_t IntegerAt(const Literal& literal, int64_t index) {
  return VisitDType(literal.shape().dtype(), [&]<DType kType>() -> int64_t {
    using T = HostType<kType>;
    if constexpr (std::is_integral_v<T>) {
      constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
      const T value = literal.data<T>()[static_cast<std::size_t>(index)];
      if constexpr (std::is_same_v<T, uint64_t>) {
        return static_cast<int64_t>(std::min(value, kMost));
      } else {
        return static_cast<int64_t>(value);
      }
    } else {
      return static_cast<int64_t>(literal.AsDouble(index));
    }
  });
}

Dims ElementStrides(absl::Span<const int64_t> dims) {
  Dims strides(dims.size(), 1);
  for (std::size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  return strides;
}

Literal TupleOrOne(std::vector<Literal> results) {
  return results.size() == 1 ? std::move(results[0]) : Literal::Tuple(std::move(results));
}

}  // namespace lazuli::hlo
