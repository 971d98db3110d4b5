// Merges equal instructions: same opcode, shape, operands and attributes, and equal regions.
//
// The two operands of a commutative opcode count as a set. Side effects, parameters and
// instructions with control predecessors are never merged. One walk, operands first, so equal
// chains merge however long they are. Linear.
//
//   a = f32[4] add(p, q)
//   b = f32[4] add(q, p)
//   ROOT m = f32[4] multiply(a, b)     =>   ROOT m = f32[4] multiply(a, a)
#pragma once

#include "lowering/passes/pass.h"

namespace lazuli::lowering {

class Cse final : public Pass {
 public:
  std::string_view name() const override { return "cse"; }
  absl::StatusOr<bool> Run(hlo::Module& module) override;
};

}  // namespace lazuli::lowering
