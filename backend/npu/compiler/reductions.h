// Reducers of HLO as the vector unit has them.
#pragma once

#include <optional>
#include <string>

#include "backend/npu/compiler/vector_kernel.h"
#include "ir/hlo/module.h"

namespace lazuli::npu {

// A monoid of the type; xor is none of the unit's.
Reduction ReductionOf(hlo::Opcode monoid, DType dtype);
// Why a reduce is none of the unit's; nothing if it is one.
std::optional<std::string> WhyNoReduction(const hlo::Instruction& reduce);
bool IsIdentity(const hlo::Instruction& init, hlo::Opcode monoid);

// What joins the values of a select-and-scatter, if there is a micro-operation for it.
std::optional<Micro> ScatterJoinOf(const hlo::Instruction& select_and_scatter);

}  // namespace lazuli::npu
