// Conversions from types of one byte, and to floats of one byte from those of two and four: element
// by element through a table of all results.
#pragma once

#include <memory>
#include <vector>

#include "backend/runtime/thunk_data.h"

namespace lazuli::cpu {

// Row-major buffers. A reason for conversions from other types.
ThunkOrReason MakeTableThunk(const hlo::Instruction& convert, const std::vector<BufferId>& operands,
                             BufferId result);
ThunkKind TableThunkKind();

}  // namespace lazuli::cpu
