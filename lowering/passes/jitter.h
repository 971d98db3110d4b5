// Jitter: random factors near 1 on the floats of a program, to show which of its results are
// sensitive to rounding.
#pragma once

#include "lowering/passes/pass.h"

namespace lazuli::lowering {

// Of LAZULI_JITTER=X: what arithmetic of the entry gives, and its parameters, are multiplied element
// by element by 1 + X * u. u in [-1, 1) is decided by the instruction's position, the element's and
// LAZULI_JITTER_SEED, so a run repeats itself. Does nothing where the flag is empty.
class Jitter final : public Pass {
 public:
  std::string_view name() const override { return "jitter"; }
  absl::StatusOr<bool> Run(hlo::Module& module) override;
};

}  // namespace lazuli::lowering
