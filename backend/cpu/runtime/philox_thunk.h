// rng-bit-generator by Philox 4x32-10, in parallel: the evaluator's bits, whatever the number of
// threads.
#pragma once

#include <memory>

#include "backend/runtime/thunk_data.h"

namespace lazuli::cpu {

// A reason for other algorithms, and states that are not u64[2] or u64[3].
ThunkOrReason MakePhiloxThunk(const hlo::Instruction& instruction, BufferId state,
                              BufferId new_state, BufferId bits);
ThunkKind PhiloxThunkKind();

}  // namespace lazuli::cpu
