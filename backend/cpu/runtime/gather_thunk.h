// gather and scatter without a call per element: windows are runs of contiguous bytes, and a monoid
// combines them in a loop of its own.
#pragma once

#include <memory>
#include <vector>

#include "backend/runtime/thunk_data.h"

namespace lazuli::cpu {

// Row-major buffers. A reason for what the evaluator has to do: windows in very many pieces, several
// operands, a reducer that is neither a monoid nor "take the update".
ThunkOrReason MakeGatherThunk(const hlo::Instruction& gather, const std::vector<BufferId>& operands,
                              BufferId result);
ThunkOrReason MakeScatterThunk(const hlo::Instruction& scatter,
                               const std::vector<BufferId>& operands, BufferId result);
ThunkKind GatherThunkKind();
ThunkKind ScatterThunkKind();

}  // namespace lazuli::cpu
