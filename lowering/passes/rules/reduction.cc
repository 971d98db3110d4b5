// Reductions. The order in which floats are added is part of a value
// (ir/evaluator/reduction_order.h), so sums are merged and moved only where that order stays.
#include <algorithm>

#include "ir/hlo/monoid.h"
#include "lowering/passes/match.h"
#include "lowering/passes/rules/rules.h"

namespace lazuli::lowering {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// A reduction of one array by a monoid.
struct Reduction {
  Opcode monoid;
  Instruction* x;
  Instruction* init;
  bool from_identity;
};

std::optional<Reduction> ReductionOf(Instruction* i) {
  if (i->operand_count() != 2 || i->called().size() != 1) return std::nullopt;
  const std::optional<Opcode> monoid = hlo::MonoidOf(*i->to_apply());
  Instruction *const x = i->operand(0), *const init = i->operand(1);
  if (!monoid || x->shape().dtype() != i->shape().dtype() || IsComplex(x->shape().dtype()))
    return std::nullopt;
  const bool identity =
      init->IsConstant() && init->literal().BitsEqual(hlo::IdentityOf(*monoid, i->shape().dtype()));
  return Reduction{*monoid, x, init, identity};
}

// Whether the order of combination does not show in the bits.
bool IsAssociative(Opcode monoid, DType dtype) {
  return !IsFloat(dtype) || monoid == Opcode::kMaximum || monoid == Opcode::kMinimum;
}

// Each result is f(init, f(identity, x)). For a sum of floats 0 + x differs from x at -0.0, so the
// addition stays.
Instruction* CombineOne(const Reduction& reduction, Instruction* x, const Shape& shape,
                        Rewriter& r) {
  const bool float_sum = reduction.monoid == Opcode::kAdd && IsFloat(shape.dtype());
  if (float_sum && !reduction.from_identity) return nullptr;
  if (reduction.from_identity && !float_sum) return x;
  Instruction* init = reduction.init;
  if (shape.rank() > 0) init = r.Broadcast(init, shape, {});
  return r.Add(reduction.monoid, shape, {x, init});
}

Instruction* ReduceTrivial(Instruction* i, Rewriter& r) {
  const std::optional<Reduction> reduction = ReductionOf(i);
  if (!reduction || i->shape().num_elements() == 0) return nullptr;
  for (int64_t d : DimensionsOf(i)) {
    if (reduction->x->shape().dim(d) != 1) return nullptr;
  }
  const bool float_sum = reduction->monoid == Opcode::kAdd && IsFloat(i->shape().dtype());
  if (float_sum && !reduction->from_identity) return nullptr;
  return CombineOne(*reduction, r.Reshape(reduction->x, i->shape().dims()), i->shape(), r);
}

Instruction* ReduceEmpty(Instruction* i, Rewriter& r) {
  if (i->operand_count() != 2 || i->operand(0)->shape().num_elements() != 0) return nullptr;
  Instruction* const init = i->operand(1);
  return i->shape().rank() == 0 ? init : r.Broadcast(init, i->shape(), {});
}

Instruction* ReduceReduce(Instruction* i, Rewriter& r) {
  Instruction* const inner = i->operand(0);
  if (inner->opcode() != Opcode::kReduce) return nullptr;
  const std::optional<Reduction> a = ReductionOf(i), b = ReductionOf(inner);
  if (!a || !b || a->monoid != b->monoid || !b->from_identity) return nullptr;
  if (!IsAssociative(a->monoid, i->shape().dtype())) return nullptr;
  Dims all = DimensionsOf(inner);
  Dims kept;  // dims of x that the inner reduction keeps
  for (int64_t d = 0; d < b->x->shape().rank(); ++d) {
    if (std::find(all.begin(), all.end(), d) == all.end()) kept.push_back(d);
  }
  for (int64_t d : DimensionsOf(i)) all.push_back(kept[static_cast<std::size_t>(d)]);
  std::sort(all.begin(), all.end());
  return r.Add(Opcode::kReduce, i->shape(), {b->x, a->init}, hlo::DimensionsAttrs{all},
               i->called());
}

// Where neither the reduced nor the kept dims change order among themselves, the transpose does
// nothing that shows.
Instruction* ReduceTranspose(Instruction* i, Rewriter& r) {
  Instruction* const transpose = i->operand(0);
  if (i->operand_count() != 2 || transpose->opcode() != Opcode::kTranspose) return nullptr;
  const Dims& permutation = DimensionsOf(transpose);
  const Dims& reduced = DimensionsOf(i);
  int64_t last_reduced = -1, last_kept = -1;
  Dims dimensions;
  for (int64_t d = 0; d < static_cast<int64_t>(permutation.size()); ++d) {
    const bool is_reduced = std::find(reduced.begin(), reduced.end(), d) != reduced.end();
    int64_t& last = is_reduced ? last_reduced : last_kept;
    const int64_t from = permutation[static_cast<std::size_t>(d)];
    if (from < last) return nullptr;
    last = from;
    if (is_reduced) dimensions.push_back(from);
  }
  return r.Add(Opcode::kReduce, i->shape(), {transpose->operand(0), i->operand(1)},
               hlo::DimensionsAttrs{dimensions}, i->called());
}

Instruction* ReduceWindowTrivial(Instruction* i, Rewriter& r) {
  const std::optional<Reduction> reduction = ReductionOf(i);
  if (!reduction || !SameDims(reduction->x->shape(), i->shape())) return nullptr;
  for (const hlo::WindowDim& w : i->attrs_as<hlo::WindowAttrs>().window) {
    if (w.size != 1 || w.stride != 1 || w.pad_low != 0 || w.pad_high != 0 || w.base_dilation != 1)
      return nullptr;
  }
  return CombineOne(*reduction, reduction->x, i->shape(), r);
}

constexpr Rule kReductionRules[] = {
    {"reduce-empty", Opcode::kReduce, ReduceEmpty, "reduce(x: [0,n]) => broadcast(init)"},
    {"reduce-trivial", Opcode::kReduce, ReduceTrivial, "reduce over dims of 1 => reshape(x)"},
    {"reduce-reduce", Opcode::kReduce, ReduceReduce, "max(max(x)) => max(x)"},
    {"reduce-transpose", Opcode::kReduce, ReduceTranspose, "reduce(transpose(x)) => reduce(x)"},
    {"reduce-window-trivial", Opcode::kReduceWindow, ReduceWindowTrivial,
     "windows of one element => x"},
};

}  // namespace

absl::Span<const Rule> ReductionRules() { return kReductionRules; }

}  // namespace lazuli::lowering
