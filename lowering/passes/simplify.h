// Applies the algebraic rules of rules/ until none applies.
//
// Each instruction is looked at once, and again when an operand or user of it changed; rules are
// found by opcode, so a pass over a module is linear in its size. Hits are counted per rule
// (rule.<name>), LAZULI_DISABLE_RULES turns rules off by name, and a rule that returns another
// shape than it was given is an error. Values stay the same bit for bit.
//
//   c = f32[] constant(1)
//   b = f32[4] broadcast(c), dimensions={}
//   m = f32[4] multiply(p, b)
//   ROOT n = f32[4] negate(m)          =>   ROOT n = f32[4] negate(p)
#pragma once

#include "lowering/passes/pass.h"

namespace lazuli::lowering {

class Simplify final : public Pass {
 public:
  std::string_view name() const override { return "simplify"; }
  absl::StatusOr<bool> Run(hlo::Module& module) override;
};

}  // namespace lazuli::lowering
