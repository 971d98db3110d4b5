// The opcode fft: lines in parallel, in the type of the elements (fourier.h).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "backend/runtime/thunk_data.h"

namespace lazuli::cpu {

// Row-major buffers; new_buffer(bytes) makes scratch memory. A reason for empty arrays.
ThunkOrReason MakeFftThunk(const hlo::Instruction& fft, const std::vector<BufferId>& operands,
                           const std::vector<BufferId>& results,
                           const std::function<BufferId(int64_t)>& new_buffer);
ThunkKind FftThunkKind();

}  // namespace lazuli::cpu
