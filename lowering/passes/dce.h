// Removes what nothing needs: instructions without a path to the root, and computations that the
// entry does not reach.
//
// Kept: parameters, side effects and what they read, elements of tuples that nobody asks for (the
// tuple's type is part of an interface). A barrier that nobody reads goes. Iterative and linear.
// Run it before passes that ask how often a value is used.
//
//   a = f32[4] add(p, p)
//   b = f32[4] multiply(p, p)
//   ROOT r = f32[4] negate(b)          =>   b, r
#pragma once

#include "lowering/passes/pass.h"

namespace lazuli::lowering {

class Dce final : public Pass {
 public:
  std::string_view name() const override { return "dce"; }
  absl::StatusOr<bool> Run(hlo::Module& module) override;
  bool is_needed() const override { return true; }
};

}  // namespace lazuli::lowering
