#include "lazy/program/program.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

#include "ir/hlo/text/printer.h"
#include "ir/support/blocking.h"
#include "ir/support/error_place.h"
#include "ir/support/float_mode.h"
#include "ir/support/hash.h"
#include "ir/support/linalg_error.h"
#include "ir/support/status.h"
#include "ir/types/leaves.h"
#include "lowering/transforms/vjp.h"

namespace lazuli::lazy {
namespace {

Fingerprint FingerprintOf(const hlo::Module& module, absl::Span<const ProgramCheck> checks) {
  std::string text = hlo::ToString(module, {.metadata = false, .canonical_names = true});
  for (const ProgramCheck& check : checks) {
    const lowering::CheckMessage& message = check.message;
    const bool is_named = message.is_users || check.function.empty();
    text += Str("check ", is_named ? message.op : check.function, "\n", message.before, "\n",
                message.after, "\n");
    if (message.matrices > 0)
      text += Str("of ", message.matrices, message.is_batch ? " in a batch\n" : "\n");
  }
  return {.low = ir::HashBytes(text.data(), text.size()),
          .high = ir::HashBytes(text.data(), text.size(), /*seed=*/1)};
}

// The shapes of those that have gradients, behind `shapes`.
void AppendDifferentiable(absl::Span<const Shape> of, std::vector<Shape>& shapes) {
  std::copy_if(of.begin(), of.end(), std::back_inserter(shapes), IsDifferentiable);
}

absl::Status CheckShapes(std::string_view what, absl::Span<const Shape> wanted,
                         absl::Span<const Shape> given) {
  if (wanted.size() != given.size())
    return InvalidArgument("the gradient has ", given.size(), " ", what, "s, not ", wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!Compatible(wanted[i], given[i]))
      return InvalidArgument("the gradient's ", what, " ", i, " is ", given[i], ", not ",
                             wanted[i]);
  }
  return absl::OkStatus();
}

absl::StatusOr<ProgramPtr> DerivedGradient(const hlo::Module& module) {
  LAZULI_ASSIGN_OR_RETURN(std::unique_ptr<hlo::Module> gradient, lowering::Gradient(module));
  gradient->set_name(Str("gradient_of_", module.name()));
  return std::make_shared<const Program>(std::move(gradient));
}

absl::Status ErrorOfMatrix(const lowering::CheckMessage& message, int64_t value) {
  const auto [index, info] = lowering::FailedMatrix::Of(value, message.matrices);
  const std::string text = absl::StrReplaceAll(message.before, {{"#", Str(info)}});
  const std::string place = message.is_batch ? Str("(Batch element ", index, "): ") : "";
  return ir::LinAlgError(place, text, message.after);
}

absl::Status ErrorWithoutPlace(const lowering::CheckMessage& message, int64_t value) {
  if (message.matrices > 0) return ErrorOfMatrix(message, value);
  if (message.is_users) return InvalidArgument(message.before, value, message.after);
  if (!message.says_value) return InvalidArgument(message.before, message.after);
  return OutOfRange(message.before, value, message.after);
}

// Collectives and states of generators have effects, too, which only their results show.
bool HasEffects(const hlo::Module& module) {
  for (const auto& computation : module.computations()) {
    for (const auto& i : computation->instructions()) {
      if (i->opcode() == hlo::Opcode::kCustomCall && i->HasSideEffect()) return true;
    }
  }
  return false;
}

}  // namespace

bool IsDifferentiable(const Shape& shape) {
  return ir::IsFloat(shape.dtype()) || ir::IsComplex(shape.dtype());
}

absl::Status ErrorOfCheck(const lowering::CheckMessage& message, std::string_view function,
                          SiteId site, int64_t value) {
  const absl::Status error = ErrorWithoutPlace(message, value);
  const bool is_named = message.is_users || function.empty();
  return ir::AtSite(ir::AddPlace(error, is_named ? message.op : function, ""), site);
}

std::string Fingerprint::ToString() const { return absl::StrFormat("%016x%016x", high, low); }

Program::Program(std::shared_ptr<const hlo::Module> module, std::vector<ProgramCheck> checks,
                 std::size_t num_flags)
    : module_(std::move(module)), checks_(std::move(checks)), num_flags_(num_flags) {
  for (const hlo::Instruction* parameter : module_->entry()->parameters())
    ForEachLeaf(parameter->shape(), [&](const Shape& leaf) { parameters_.push_back(leaf); });
  results_ = ir::LeavesOf(module_->entry()->root()->shape());
  LAZULI_CHECK(results_.size() >= checks_.size() + num_flags_, name(), " has ", results_.size(),
               " outputs, fewer than checks and flags");
  results_.resize(results_.size() - checks_.size() - num_flags_);
  has_effects_ = HasEffects(*module_);
}

const Fingerprint& Program::fingerprint() const {
  std::call_once(fingerprinted_, [this] { fingerprint_ = FingerprintOf(*module_, checks_); });
  return fingerprint_;
}

const absl::StatusOr<ProgramPtr>& Program::gradient() const {
  const auto lock = ir::LockByWaiting(deriving_);  // a rule may be a function of the user's
  if (!gradient_) {
    const ir::ScopedFloatMode mode;
    gradient_ = given_gradient_ != nullptr ? given_gradient_ : DerivedGradient(*module_);
  }
  return *gradient_;
}

absl::StatusOr<ProgramPtr> Program::WithGradient(ProgramPtr gradient) const {
  std::vector<Shape> taken = parameters_, given;
  AppendDifferentiable(results_, taken);
  AppendDifferentiable(parameters_, given);
  LAZULI_RETURN_IF_ERROR(CheckShapes("parameter", taken, gradient->parameters()));
  LAZULI_RETURN_IF_ERROR(CheckShapes("result", given, gradient->results()));
  auto program = std::make_shared<Program>(module_, checks_, num_flags_);
  program->given_gradient_ = std::move(gradient);
  return program;
}

}  // namespace lazuli::lazy
