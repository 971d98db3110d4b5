// Cumulative sums, products, maxima and minima in one pass (ir/evaluator/cumulative.h), lines in
// parallel.
#pragma once

#include <memory>
#include <vector>

#include "backend/runtime/thunk.h"

namespace lazuli::cpu {

// Row-major buffers. nullptr if the instruction is no cumulative reduction by a monoid.
std::unique_ptr<Thunk> MakeCumulativeThunk(const hlo::Instruction& reduce_window,
                                           const std::vector<BufferId>& operands, BufferId result);

}  // namespace lazuli::cpu
