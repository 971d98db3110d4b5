// Cumulative sums, products, maxima and minima in one pass (ir/evaluator/cumulative.h), lines in
// parallel.
#pragma once

#include <memory>
#include <vector>

#include "backend/runtime/thunk_data.h"

namespace lazuli::cpu {

// Row-major buffers. A reason if the instruction is not a cumulative reduction by a monoid.
ThunkOrReason MakeCumulativeThunk(const hlo::Instruction& reduce_window,
                                  const std::vector<BufferId>& operands, BufferId result);
ThunkKind CumulativeThunkKind();

}  // namespace lazuli::cpu
