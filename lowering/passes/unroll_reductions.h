// Writes reductions and dots of few elements out, as elementwise work on slices.
//
//   s = f32[] reduce(x, 0), dimensions={0}, to_apply=add      // x = f32[3]
//   =>  s = f32[] add(add(add(0, x[0]), add(0, x[2])), ...)
//
// A kernel of a loop computes elements, and folds over none. Reductions by a monoid, in the order
// of ir/evaluator/reduction_order.h; dots whose sums have the type of the result.
#pragma once

#include "lowering/passes/pass.h"
#include "lowering/passes/rewriter.h"

namespace lazuli::lowering {

// Whether it writes this one out.
bool UnrollsReduction(const hlo::Instruction& instruction);

// The sum of a dot's products, term by term, as elementwise work.
hlo::Instruction* UnrolledDot(Rewriter& rewriter, const hlo::Instruction& dot);

// Those of one computation; whether there were any.
bool UnrollReductionsIn(hlo::Computation* computation);

class UnrollReductions final : public Pass {
 public:
  std::string_view name() const override { return "unroll_reductions"; }
  absl::StatusOr<bool> Run(hlo::Module& module) override;
};

}  // namespace lazuli::lowering
