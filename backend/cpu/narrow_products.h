// Which products of narrow factors are computed without widening these in memory first.
#pragma once

#include "ir/hlo/module.h"

namespace lazuli::cpu {

// Whether both factors of the dot are bf16, and are multiplied as they are, to f32: by a kernel that
// widens as it reads, or by the processor's own instructions.
bool MultipliesNarrow(const hlo::Instruction& dot);

// Whether a dot of f32 would have a kernel that widens a factor of this dtype as it reads it
// (runtime/few_rows.h).
bool WidensAsItReads(const hlo::Instruction& dot, DType factor);

}  // namespace lazuli::cpu
