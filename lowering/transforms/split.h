// Cuts a computation in two by what depends on some of its inputs: what is known without them, and the
// rest, which takes of the first part what it needs: its residuals.
//
// Cutting the derivative of a computation by its tangents gives the computation, and a linear map of
// the tangents. Loops and branches are cut in two as well: a loop stacks its residuals, one for
// each step.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"

#include "lowering/transforms/dependence.h"

namespace lazuli::lowering {

struct SplitComputation {
  // Takes the known parts of the parameters, one parameter each. Its result is a flat tuple: the known
  // parts of the result, then the residuals that are no parameter.
  hlo::Computation* known = nullptr;
  // Takes the other parts of the parameters, then all residuals. Its result is a flat tuple of the other
  // parts of the result.
  hlo::Computation* linear = nullptr;
  // By residual: its shape, and the part of the parameters that it is, if it is one.
  std::vector<Shape> residuals{};
  std::vector<std::optional<std::size_t>> parameter_of{};
};

// `linear` names the parts of the parameters that are not known, `linear_results` the parts of the result
// that the second computation makes: those that depend on them, and more if a caller wants. `constants`:
// of the parameters' parts, what is known of them; may be empty.
absl::StatusOr<SplitComputation> Split(hlo::Module& module, const hlo::Computation& computation,
                                       const Mask& linear, const Mask& linear_results,
                                       absl::Span<const std::optional<Literal>> constants = {});

}  // namespace lazuli::lowering
