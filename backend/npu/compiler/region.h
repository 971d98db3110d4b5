// Regions that compute on scalars: reducers as expressions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backend/npu/compiler/expression.h"
#include "ir/hlo/module.h"

namespace lazuli::npu {

// Why a region is no expression; nothing if it is one.
std::optional<std::string> WhyNoExpression(const hlo::Computation& region);
// The values of its root's parts.
std::vector<ValueNodes> AddRegion(const hlo::Computation& region,
                                  absl::Span<const ValueNodes> arguments, Expression& expression);

// In which other orders than strictly from the first to the last a reducer may fold.
enum class FoldOrder : uint8_t { kStrict, kGroups, kAny };
FoldOrder FoldOrderOf(const hlo::Instruction& reduce);

}  // namespace lazuli::npu
