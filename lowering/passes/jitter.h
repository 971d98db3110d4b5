// Jitter: random factors near 1 on the floats of a program, to show which of its results are
// sensitive to rounding.
#pragma once

#include <string>
#include <utility>

#include "lowering/passes/pass.h"

namespace lazuli::lowering {

// Of an amplitude X (LAZULI_JITTER): what arithmetic of the entry gives, and its parameters, are multiplied element
// by element by 1 + X * u. u in [-1, 1) is decided by the instruction's position, the element's and
// the seed (LAZULI_JITTER_SEED), so a run repeats itself. Does nothing where the amplitude is empty.
class Jitter final : public Pass {
 public:
  explicit Jitter(std::string amplitude = PassOptions::Now().jitter,
                  int64_t seed = PassOptions::Now().jitter_seed)
      : amplitude_(std::move(amplitude)), seed_(seed) {}
  std::string_view name() const override { return "jitter"; }
  absl::StatusOr<bool> Run(hlo::Module& module) override;

 private:
  const std::string amplitude_;
  const int64_t seed_;
};

}  // namespace lazuli::lowering
