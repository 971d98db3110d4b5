// What derivatives of modules share: the module made ready, the derivative of its entry, and the end.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"

#include "lowering/transforms/jvp.h"
#include "lowering/transforms/parts.h"

namespace lazuli::lowering {

// A copy without what rules do not see: calls, layouts, scans, halves of asynchronous instructions.
absl::StatusOr<std::unique_ptr<hlo::Module>> PrepareToDerive(const hlo::Module& module);

// The entry with tangents: its parameters are those of the entry, then the tangents of active leaves;
// its result is a flat tuple of the parts of the result, then the tangents of those that have one.
struct DerivedEntry {
  hlo::Computation* computation;
  ActiveLeaves given;        // parts of the parameters
  std::vector<bool> active;  // parts of the result
};
absl::StatusOr<DerivedEntry> DeriveEntry(hlo::Module& module, const ActiveLeaves& active);

// Parameters of these shapes, with the names of the computation's.
std::vector<Op> ParametersLike(Builder& b, const hlo::Computation& computation);

// The module with this entry, simplified.
absl::StatusOr<std::unique_ptr<hlo::Module>> Tidied(std::unique_ptr<hlo::Module> module,
                                                    hlo::Computation* entry);

}  // namespace lazuli::lowering
