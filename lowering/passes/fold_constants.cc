#include "lowering/passes/fold_constants.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ir/evaluator/evaluator.h"
#include "lowering/passes/rewriter.h"

namespace lazuli::lowering {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// A constant that is part of the code should not be larger than the code around it; 64 KiB is also
// a millisecond of evaluating.
constexpr int64_t kMaxBytes = 64 << 10;

bool IsCheap(Opcode opcode) {
  if (hlo::Traits(opcode).elementwise) return true;
  switch (opcode) {
    case Opcode::kReshape:
    case Opcode::kTranspose:
    case Opcode::kReverse:
    case Opcode::kSlice:
    case Opcode::kDynamicSlice:
    case Opcode::kDynamicUpdateSlice:
    case Opcode::kConcatenate:
    case Opcode::kPad:
    case Opcode::kReduce:
    case Opcode::kBitcastConvert:
      return true;
    default:
      return false;
  }
}

bool IsSmall(const Instruction* i) {
  return i->shape().IsArray() && i->shape().byte_size() <= kMaxBytes;
}

bool CanFold(const Instruction* i) {
  if (i->operand_count() == 0 || !IsCheap(i->opcode()) || !IsSmall(i)) return false;
  if (!i->control_predecessors().empty() || i->shape().has_layout()) return false;
  return std::all_of(i->operands().begin(), i->operands().end(), [](const Instruction* operand) {
    return operand->IsConstant() && IsSmall(operand);
  });
}

bool FoldConstantsIn(hlo::Computation* computation) {
  const auto& all = computation->instructions();
  if (std::none_of(all.begin(), all.end(), [](const auto& i) { return i->IsConstant(); }))
    return false;
  Rewriter r(computation);
  std::vector<const Literal*> operands;
  for (Instruction* i : computation->PostOrder()) {
    if (!CanFold(i) || (i->users().empty() && !i->IsRoot())) continue;
    operands.clear();
    for (const Instruction* operand : i->operands()) operands.push_back(&operand->literal());
    absl::StatusOr<Literal> value = hlo::EvaluateInstruction(*i, operands);
    if (!value.ok()) continue;  // what cannot be evaluated fails, if it does, where it runs
    r.set_origin(i);
    r.Replace(i, r.AddConstant(*std::move(value)));
  }
  return r.changed();
}

}  // namespace

absl::StatusOr<bool> FoldConstants::Run(hlo::Module& module) {
  bool changed = false;
  for (const auto& computation : module.computations())
    changed |= FoldConstantsIn(computation.get());
  return changed;
}

}  // namespace lazuli::lowering
