#include "backend/cpu/passes/read_narrow_factors.h"

#include "lowering/passes/rewriter.h"
#include "lowering/passes/scheduled.h"

namespace lazuli::cpu {
namespace {

// Whether every value of the narrow dtype is one of the wide dtype, too.
bool IsExact(DType narrow, DType wide) {
  const bool is_byte = narrow == DType::kS8 || narrow == DType::kU8;
  const auto is_half = [](DType dtype) { return dtype == DType::kBF16 || dtype == DType::kF16; };
  return (wide == DType::kF32 && (is_byte || is_half(narrow))) || (is_half(wide) && is_byte);
}

// What was widened to the factor, by several converts perhaps; or else the factor itself.
hlo::Instruction* Narrow(hlo::Instruction* factor) {
  while (factor->opcode() == hlo::Opcode::kConvert &&
         IsExact(factor->operand(0)->shape().dtype(), factor->shape().dtype()))
    factor = factor->operand(0);
  return factor;
}

}  // namespace

absl::StatusOr<bool> ReadNarrowFactors::Run(hlo::Module& module) {
  return lowering::RewriteScheduled(module, [&](hlo::Computation* computation) {
    lowering::Rewriter rewriter(computation);
    for (hlo::Instruction* i : computation->PostOrder()) {
      if (i->opcode() != hlo::Opcode::kDot) continue;
      for (int64_t k = 0; k < 2; ++k) {
        hlo::Instruction* const narrow = Narrow(i->operand(k));
        if (narrow != i->operand(k) && widens_(*i, narrow->shape().dtype()))
          rewriter.ReplaceOperand(i, k, narrow);
      }
    }
    return absl::StatusOr<bool>(rewriter.changed());
  });
}

}  // namespace lazuli::cpu
