// Which instructions of HLO the compiler has programs for.
#pragma once

#include <optional>
#include <string>

#include "backend/npu/sim/config.h"
#include "ir/hlo/module.h"

namespace lazuli::npu {

// Why the compiler has no program for an instruction.
struct Refusal {
  std::string code;    // "unsupported-op", "unsupported-dtype", "unsupported-shape"
  std::string reason;  // a sentence without its end: "the vector unit has no asinh"
};

// Nothing if Compile() takes a module of such instructions. It looks at the instruction and at what it calls, not at its
// operands' origins.
std::optional<Refusal> WhyNot(const hlo::Instruction& instruction, const Config& config);

}  // namespace lazuli::npu
