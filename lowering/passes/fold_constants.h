// Replaces instructions whose operands are all constants by their value, as the evaluator defines
// it.
//
// Only cheap opcodes (elementwise, data movement, reductions), and only where no operand and not
// the result is larger than 64 KiB. Broadcasts and iotas stay: they are smaller than their value
// and free inside a fused loop (the rule elementwise-of-broadcasts moves arithmetic before the
// broadcast, where it folds).
//
//   a = f32[] constant(2)
//   b = f32[] constant(3)
//   c = f32[] multiply(a, b)
//   ROOT d = f32[] add(p, c)          =>   ROOT d = f32[] add(p, constant(6))
#pragma once

#include "lowering/passes/pass.h"

namespace lazuli::lowering {

class FoldConstants final : public Pass {
 public:
  std::string_view name() const override { return "fold_constants"; }
  absl::StatusOr<bool> Run(hlo::Module& module) override;
};

}  // namespace lazuli::lowering
