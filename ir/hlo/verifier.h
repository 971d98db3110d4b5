// Checks a module: every shape against its rule, operands before users and in the same computation,
// arities, regions' signatures, parameters numbered 0..n-1, one root, aliases in range. Errors name
// instruction, rule and shapes.
#pragma once

#include "absl/status/status.h"

#include "ir/hlo/module.h"

namespace lazuli::hlo {

absl::Status Verify(const Module& module);

}  // namespace lazuli::hlo
