// ChainThunks: joins neighbouring thunks that fall into the same parts (runtime/chain_thunk.h).
#pragma once

#include "backend/runtime/program.h"

namespace lazuli::cpu {

// Chains grow around library calls that are cut along the batch: elementwise work on a
// convolution's result, pooling, the reorder behind it, the next convolution. Before AssignBuffers,
// as all that a chain uses is alive in all of it.
void ChainThunks(ThunkSequence& sequence, int threads);

}  // namespace lazuli::cpu
