#include "lazy/ops/program/call.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "ir/hlo/composite.h"
#include "ir/hlo/devices/collective.h"
#include "ir/support/fork.h"
#include "ir/support/runtime.h"
#include "lazy/ops/core/functions.h"
#include "lazy/tensor/outside.h"
#include "lowering/transforms/parts.h"

namespace lazuli::lazy {
namespace {

// An argument of the shape, of the next ones of its leaves.
lowering::Op TakeArgument(lowering::Builder& b, const Shape& shape,
                          absl::Span<const lowering::Op>& leaves) {
  if (shape.IsToken()) return b.Add(lowering::Opcode::kAfterAll, {});
  if (!shape.IsTuple()) {
    const lowering::Op leaf = leaves.front();
    leaves.remove_prefix(1);
    return leaf;
  }
  std::vector<lowering::Op> elements;
  for (const Shape& element : shape.tuple()) elements.push_back(TakeArgument(b, element, leaves));
  return b.Tuple(elements);
}

void AppendLeaves(lowering::Builder& b, lowering::Op value, std::vector<lowering::Op>& leaves) {
  const Shape shape = value.shape();  // NOLINT: a copy, for the original moves
  if (shape.IsArray()) leaves.push_back(value);
  if (!shape.IsTuple()) return;
  for (std::size_t i = 0; i < shape.tuple().size(); ++i)
    AppendLeaves(b, b.GetTupleElement(value, static_cast<int64_t>(i)), leaves);
}

// The message of a check inside the program. Its op has the line of the call, so it says its own.
lowering::CheckMessage MessageOf(const ProgramCheck& check, const Program& program) {
  lowering::CheckMessage message = check.message;
  if (!check.function.empty() && !message.is_users) message.op = check.function;
  message.after += Str(ir::InParentheses(check.site), ", in a call of ", program.name());
  return message;
}

[[noreturn]] void Refuse(const Program& program, const absl::Status& why) {
  ThrowRecordError(Str("call of ", program.name()), why);
}

void CheckArguments(const Program& program, absl::Span<const Tensor> arguments) {
  if (const int64_t devices = hlo::DeviceCount(program.module()); devices != 1)
    Refuse(program, InvalidArgument("the program is for ", devices,
                                    " devices; run_on_devices() runs it on them"));
  const std::vector<Shape>& parameters = program.parameters();
  if (arguments.size() != parameters.size())
    Refuse(program,
           InvalidArgument("it takes ", parameters.size(), " arguments, not ", arguments.size()));
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].defined())
      Refuse(program, InvalidArgument("argument ", i, " is an undefined tensor"));
    if (!Compatible(arguments[i].shape(), parameters[i]))
      Refuse(program, InvalidArgument("argument ", i, " is ", arguments[i].shape(), ", not ",
                                      parameters[i]));
  }
}

ProgramPtr GradientOf(const Program& program) {
  const absl::StatusOr<ProgramPtr>& gradient = program.gradient();
  if (!gradient.ok())
    Refuse(program, ir::MakeError(gradient.status().code(), Message(gradient.status()),
                                  "; an argument wants a gradient: give the program one "
                                  "(with_gradient) or detach() the argument"));
  return *gradient;
}

// Results that nobody can differentiate have no history, so that nothing gets lost. While a function
// is traced nobody knows yet whether its gradient is wanted: then backward finds out.
void CheckGradient(const Program& program, absl::Span<const Operand> in) {
  if (!WantsGrad(in) || Outside::Of(Context::Current()) != nullptr) return;
  if (std::none_of(program.results().begin(), program.results().end(), IsDifferentiable)) return;
  (void)GradientOf(program);
}

// The innermost scope of each thread that has one. Only calls with effects look.
class AfterScopes {
 public:
  static AfterScopes& Get() { return ir::Runtime::Get().Of<AfterScopes>(); }
  AfterScope* Innermost() {
    const std::lock_guard lock(mutex_);
    const auto found = innermost_.find(std::this_thread::get_id());
    return found == innermost_.end() ? nullptr : found->second;
  }
  AfterScope* Exchange(AfterScope* scope) {
    const std::lock_guard lock(mutex_);
    AfterScope* const outer = std::exchange(innermost_[std::this_thread::get_id()], scope);
    if (scope == nullptr) innermost_.erase(std::this_thread::get_id());
    return outer;
  }

 private:
  ir::ForkMutex mutex_;
  std::map<std::thread::id, AfterScope*> innermost_;
};

// The results of the program's instructions, which take the place of a call and of which the
// effects come after `before`.
std::vector<lowering::Op> Inlined(lowering::LoweringContext& context, const hlo::Module& program,
                                  absl::Span<const lowering::Op> arguments,
                                  absl::Span<const lowering::Op> before, bool ordered) {
  lowering::PartMap<lowering::Op> map;
  map.AddParameters(*program.entry(), arguments);
  for (const hlo::Instruction* i : program.entry()->PostOrder()) {
    if (i->opcode() == lowering::Opcode::kParameter || map.Route(*i)) continue;
    std::vector<lowering::Op> operands;
    for (const hlo::Instruction* operand : i->operands())
      operands.push_back(lowering::WholeOf(context.builder, operand->shape(), map.at(operand)));
    const lowering::Op made = lowering::AddLike(context.builder, *i, operands);
    if (i->HasSideEffect()) context.ComesAfter(made, before, ordered);
    map[i] = lowering::PartsOf(context.builder, made);
    map[i].resize(lowering::PartCount(i->shape()));  // after an error
  }
  return map.at(program.entry()->root());
}

}  // namespace

std::string AttrValueText(const CalledProgram& called) { return called->name(); }
std::string AttrValueText(const CallForm& form) { return Str(form.name, form.config); }

std::string CallOp::AttrText() const {
  if (form.name.empty()) return Str(", program=", program->name());
  if (form.config.empty()) return "";
  std::string text = form.config;  // of the user's; braces and lines are those of the graph
  for (char& c : text) {
    if (c == '(' || c == '{') c = '[';
    if (c == ')' || c == '}') c = ']';
    if (c == '\n' || c == '\r') c = ' ';
  }
  return Str(", config={", text, "}");
}

std::vector<lowering::Op> CallOp::Lower(lowering::LoweringContext& context,
                                        absl::Span<const lowering::Op> given) const {
  lowering::Builder& b = context.builder;
  std::vector<lowering::Op> operands, outputs;
  if (b.shapes_only()) {
    for (const Shape& result : program->results())
      outputs.push_back(b.Parameter(0, result.WithDefaultLayout()));
    return outputs;
  }
  absl::Span<const lowering::Op> arguments = given.first(given.size() - NumBefore());
  const absl::Span<const lowering::Op> before = given.last(NumBefore());
  if (form.kind == CallForm::Kind::kOp)
    return Inlined(context, program->module(), arguments, before, form.ordered);
  for (const hlo::Instruction* parameter : program->module().entry()->parameters())
    operands.push_back(TakeArgument(b, parameter->shape(), arguments));
  const lowering::Op call = b.Call(context.CopyOf(program->module()), operands);
  if (form.kind == CallForm::Kind::kComposite && call.instruction() != nullptr)
    hlo::MarkComposite(*call.instruction(), form.name);
  if (program->has_effects()) context.ComesAfter(call, before, form.ordered);
  AppendLeaves(b, call, outputs);
  if (!b.status().ok()) return {};
  const std::size_t count = program->results().size();
  for (std::size_t i = 0; i < program->checks().size(); ++i)
    context.checks.push_back({outputs[count + i], MessageOf(program->checks()[i], *program)});
  outputs.resize(count);
  return outputs;
}

Tensors CallOp::Vjp(const Saved& s, absl::Span<const Tensor> dys) const {
  Tensors in;
  const std::size_t arguments = s.size() - NumBefore();
  for (std::size_t i = 0; i < arguments; ++i) in.push_back(s.x(i));
  backend::Device device;
  for (const Tensor& dy : dys) {
    if (dy.defined()) device = dy.device();
  }
  for (std::size_t i = 0; i < dys.size(); ++i) {
    const Shape& shape = program->results()[i];
    if (!IsDifferentiable(shape)) continue;
    in.push_back(dys[i].defined() ? dys[i] : FullConstant(shape.WithDefaultLayout(), 0, device));
  }
  Tensors given = Call(GradientOf(*program), in), grads(s.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < arguments; ++i) {
    if (IsDifferentiable(program->parameters()[i])) grads[i] = std::move(given[next++]);
  }
  return grads;
}

Tensors Call(const ProgramPtr& program, absl::Span<const Tensor> arguments, backend::Device device,
             CallForm form) {
  CheckArguments(*program, arguments);
  std::vector<Operand> in(arguments.begin(), arguments.end());
  CheckGradient(*program, in);
  if (!in.empty()) device = arguments[0].device();
  Tensors before;  // without their histories
  const AfterScope* scope = program->has_effects() ? AfterScopes::Get().Innermost() : nullptr;
  for (; scope != nullptr; scope = scope->outer_) {
    for (const Tensor& tensor : scope->tensors_) {
      if (tensor.device() == device) before.push_back(Detach(tensor));
    }
  }
  in.insert(in.end(), before.begin(), before.end());
  form.before = static_cast<int64_t>(before.size());
  return RecordAll(CallOp{{program}, std::move(form)}, in, in.empty() ? device : backend::Device());
}

AfterScope::AfterScope(Tensors tensors)
    : tensors_(std::move(tensors)), outer_(AfterScopes::Get().Exchange(this)) {}
AfterScope::~AfterScope() { AfterScopes::Get().Exchange(outer_); }

}  // namespace lazuli::lazy
