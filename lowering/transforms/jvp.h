// Forward-mode derivatives of modules.
//
//   ENTRY f { x = f32[4] parameter(0)  ROOT y = f32[4] tanh(x) }
//   =>  ENTRY f { x = f32[4] parameter(0)  t = f32[4] parameter(1)  y = f32[4] tanh(x)
//         ... ROOT r = (f32[4], f32[4]) tuple(y, (1 + y) * (1 - y) * t) }
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"

#include "ir/hlo/module.h"

namespace lazuli::lowering {

// Which leaves of the entry's parameters have tangents: one flag for each array in them, in order; empty
// for all floats and complex numbers.
using ActiveLeaves = std::vector<bool>;

// The module whose parameters are those of `module`, then a tangent for each active leaf, and whose
// result is a flat tuple: the leaves of the result, then a tangent for each of them that is a float or
// complex number. The last `trailing` leaves of the result stay behind everything else. An error names the instruction that has no rule, with its line.
absl::StatusOr<std::unique_ptr<hlo::Module>> Jvp(const hlo::Module& module,
                                                 const ActiveLeaves& active = {},
                                                 std::size_t trailing = 0);

}  // namespace lazuli::lowering
