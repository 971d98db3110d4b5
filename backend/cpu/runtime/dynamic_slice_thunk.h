// dynamic-slice and dynamic-update-slice: a strided copy whose place is data. An update happens in
// place where the array's memory is free to change.
#pragma once

#include <memory>
#include <vector>

#include "backend/runtime/thunk_data.h"

namespace lazuli::cpu {

// `operands` are the buffers of the instruction's operands in order, of any layout. A reason if the
// starts are not one scalar for each dimension, or an update would change the layout.
ThunkOrReason MakeDynamicSliceThunk(const hlo::Instruction& instruction,
                                    const std::vector<BufferId>& operands, BufferId result);
ThunkKind DynamicSliceThunkKind();
ThunkKind DynamicUpdateSliceThunkKind();

}  // namespace lazuli::cpu
