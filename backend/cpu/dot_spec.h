// PlanDot: a dot as a batched matrix multiplication over strided operands.
#pragma once

#include <array>
#include <optional>

#include "backend/cpu/runtime/library.h"
#include "backend/cpu/runtime/strided_copy.h"
#include "ir/hlo/module.h"

namespace lazuli::cpu {

struct DotPlan {
  MatmulSpec spec;
  // Where an operand's dimensions do not merge into batch, rows and columns: the copy that makes it
  // {batch, row, column} row major, which the spec's strides then describe.
  std::array<std::optional<StridedCopy>, 2> pack;
};

// nullopt unless the result is row major and not empty, and operands have its dtype, or narrower ones
// beside f32.
std::optional<DotPlan> PlanDot(const hlo::Instruction& dot);

}  // namespace lazuli::cpu
