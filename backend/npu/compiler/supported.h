// Which instructions of HLO the compiler has programs for.
#pragma once

#include <optional>

#include "backend/npu/sim/config.h"
#include "backend/npu/sim/namespace.h"
#include "backend/runtime/refusal.h"
#include "ir/hlo/module.h"

namespace lazuli::npu {

// Why the compiler has no program for the instruction: unsupported-op, unsupported-dtype or
// unsupported-shape. Nothing if Compile() takes a module of such instructions. It looks at the instruction and at what it calls, not at its
// operands' origins.
std::optional<Refusal> WhyNot(const hlo::Instruction& instruction, const Config& config);

}  // namespace lazuli::npu
