#include "backend/cpu/passes/widen_products.h"

#include "lowering/passes/rewriter.h"

namespace lazuli::backend {
namespace {

using hlo::Instruction;
using hlo::Opcode;

bool IsNarrow(DType dtype) { return IsFloat(dtype) && ByteWidth(dtype) < 4; }
bool FitsF32(DType dtype) { return IsNarrow(dtype) || dtype == DType::kF32; }

bool ShouldWiden(const Instruction& i) {
  if (i.opcode() != Opcode::kDot && i.opcode() != Opcode::kConvolution) return false;
  const DType a = i.operand(0)->shape().dtype(), b = i.operand(1)->shape().dtype(),
              result = i.shape().dtype();
  return FitsF32(a) && FitsF32(b) && FitsF32(result) &&
         (IsNarrow(a) || IsNarrow(b) || IsNarrow(result));
}

Shape WithDType(Shape shape, DType dtype) {
  shape.set_dtype(dtype);
  return shape;
}

Instruction* Converted(lowering::Rewriter& rewriter, Instruction* x, DType dtype) {
  if (x->shape().dtype() == dtype) return x;
  return rewriter.Add(Opcode::kConvert, WithDType(x->shape(), dtype), {x});
}

}  // namespace

absl::StatusOr<bool> WidenProducts::Run(hlo::Module& module) {
  lowering::Rewriter rewriter(module.entry());
  for (Instruction* i : module.entry()->PostOrder()) {
    if (!ShouldWiden(*i)) continue;
    rewriter.set_origin(i);
    Instruction* const wide = rewriter.Add(i->opcode(), WithDType(i->shape(), DType::kF32),
                                           {Converted(rewriter, i->operand(0), DType::kF32),
                                            Converted(rewriter, i->operand(1), DType::kF32)},
                                           i->attrs());
    rewriter.Replace(i, Converted(rewriter, wide, i->shape().dtype()));
  }
  return rewriter.changed();
}

}  // namespace lazuli::backend
