#include "lowering/passes/split_complex_products.h"

#include "lowering/passes/rewriter.h"
#include "lowering/passes/scheduled.h"

namespace lazuli::lowering {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Multiplications below which the parts cost more to take apart than they save.
constexpr int64_t kLarge = 64 * 64 * 64;

bool ShouldSplit(const Instruction& i) {
  if (i.opcode() != Opcode::kDot || i.shape().dtype() != DType::kC64 ||
      i.operand(0)->shape().dtype() != DType::kC64 || i.operand(1)->shape().dtype() != DType::kC64)
    return false;
  int64_t work = i.shape().num_elements();
  for (int64_t d : i.attrs_as<hlo::DotAttrs>().lhs_contracting_dims)
    work *= i.operand(0)->shape().dim(d);
  return work >= kLarge;
}

void Split(Instruction* dot, Rewriter& rewriter) {
  rewriter.set_origin(dot);
  const auto real_shape = [](const Instruction* i) {
    Shape shape = i->shape();
    shape.set_dtype(DType::kF32);
    return shape;
  };
  const auto part = [&](Opcode opcode, Instruction* x) {
    return rewriter.Add(opcode, real_shape(x), {x});
  };
  Instruction *a = dot->operand(0), *b = dot->operand(1);
  Instruction *a_real = part(Opcode::kReal, a), *a_imag = part(Opcode::kImag, a);
  Instruction *b_real = part(Opcode::kReal, b), *b_imag = part(Opcode::kImag, b);
  const Shape shape = real_shape(dot);
  const auto product = [&](Instruction* x, Instruction* y) {
    return rewriter.Add(Opcode::kDot, shape, {x, y}, dot->attrs());
  };
  Instruction* re =
      rewriter.Add(Opcode::kSubtract, shape, {product(a_real, b_real), product(a_imag, b_imag)});
  Instruction* im =
      rewriter.Add(Opcode::kAdd, shape, {product(a_real, b_imag), product(a_imag, b_real)});
  rewriter.Replace(dot, rewriter.Add(Opcode::kComplex, dot->shape(), {re, im}));
}

absl::StatusOr<bool> SplitIn(hlo::Computation* computation) {
  Rewriter rewriter(computation);
  for (Instruction* i : computation->PostOrder()) {
    if (ShouldSplit(*i)) Split(i, rewriter);
  }
  return rewriter.changed();
}

}  // namespace

absl::StatusOr<bool> SplitComplexProducts::Run(hlo::Module& module) {
  return RewriteScheduled(module, SplitIn);
}

}  // namespace lazuli::lowering
