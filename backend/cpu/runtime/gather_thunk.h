// gather and scatter without a call per element: windows are runs of contiguous bytes, and a monoid
// combines them in a loop of its own.
#pragma once

#include <memory>
#include <vector>

#include "backend/runtime/thunk.h"

namespace lazuli::cpu {

// Row-major buffers. nullptr for what the evaluator has to do: windows in very many pieces, several
// operands, a reducer that is neither a monoid nor "take the update".
std::unique_ptr<Thunk> MakeGatherThunk(const hlo::Instruction& gather,
                                       const std::vector<BufferId>& operands, BufferId result);
std::unique_ptr<Thunk> MakeScatterThunk(const hlo::Instruction& scatter,
                                        const std::vector<BufferId>& operands, BufferId result);

}  // namespace lazuli::cpu
