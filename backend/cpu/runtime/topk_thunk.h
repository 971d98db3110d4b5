// The k largest or smallest of each row, by selection instead of a sort.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "backend/runtime/thunk_data.h"

namespace lazuli::cpu {

// The opcode topk, or a custom call "TopK": one operand, values and s32 places as results,
// row-major buffers; new_buffer(bytes) makes scratch memory. A reason for types without bits of
// their order.
ThunkOrReason MakeTopKThunk(const hlo::Instruction& topk, const std::vector<BufferId>& operands,
                            const std::vector<BufferId>& results,
                            const std::function<BufferId(int64_t)>& new_buffer);
ThunkKind TopKThunkKind();

}  // namespace lazuli::cpu
