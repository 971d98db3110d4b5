#include "lowering/passes/widen_products.h"

#include <unordered_map>

#include "lowering/passes/rewriter.h"
#include "lowering/passes/scheduled.h"

namespace lazuli::lowering {
namespace {

using hlo::Instruction;
using hlo::Opcode;

bool IsNarrow(DType dtype) { return IsFloat(dtype) && ByteWidth(dtype) < 4; }
bool FitsF32(DType dtype) { return IsNarrow(dtype) || dtype == DType::kF32; }

// Products of s8 whose sums are whole numbers that f32 holds: at most 2^24.
bool IsExactInF32(const Instruction& dot) {
  constexpr int64_t kTerms = (1 << 24) / (128 * 128);
  const Shape& a = dot.operand(0)->shape();
  if (a.dtype() != DType::kS8 || dot.operand(1)->shape().dtype() != DType::kS8 ||
      dot.shape().dtype() != DType::kS32)
    return false;
  int64_t terms = 1;
  for (int64_t d : dot.attrs_as<hlo::DotAttrs>().lhs_contracting_dims) terms *= a.dim(d);
  return terms <= kTerms;
}

bool ShouldWiden(const Instruction& i) {
  if (i.opcode() != Opcode::kDot && i.opcode() != Opcode::kConvolution) return false;
  if (i.opcode() == Opcode::kDot && IsExactInF32(i)) return true;
  const DType a = i.operand(0)->shape().dtype(), b = i.operand(1)->shape().dtype(),
              result = i.shape().dtype();
  return FitsF32(a) && FitsF32(b) && FitsF32(result) &&
         (IsNarrow(a) || IsNarrow(b) || IsNarrow(result));
}

Shape WithDType(Shape shape, DType dtype) {
  shape.set_dtype(dtype);
  return shape;
}

using Multiplies = std::function<bool(const Instruction&)>;

absl::StatusOr<bool> WidenIn(hlo::Computation* computation, const Multiplies& multiplies) {
  Rewriter rewriter(computation);
  std::unordered_map<Instruction*, Instruction*> wide_operands;  // each is converted once
  const auto operand = [&](Instruction* x) {
    Instruction*& wide = wide_operands[x];
    if (wide == nullptr) wide = rewriter.Convert(x, DType::kF32);
    return wide;
  };
  for (Instruction* i : computation->PostOrder()) {
    if (!ShouldWiden(*i)) continue;
    const bool keeps = multiplies && multiplies(*i);
    if (keeps && i->shape().dtype() == DType::kF32) continue;
    rewriter.set_origin(i);
    Instruction* const a = i->operand(0);
    Instruction* const b = i->operand(1);
    Instruction* const wide =
        rewriter.Add(i->opcode(), WithDType(i->shape(), DType::kF32),
                     {keeps ? a : operand(a), keeps ? b : operand(b)}, i->attrs());
    rewriter.Replace(i, rewriter.Convert(wide, i->shape().dtype()));
  }
  return rewriter.changed();
}

}  // namespace

absl::StatusOr<bool> WidenProducts::Run(hlo::Module& module) {
  return RewriteScheduled(
      module, [this](hlo::Computation* computation) { return WidenIn(computation, multiplies_); });
}

}  // namespace lazuli::lowering
