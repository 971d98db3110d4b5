// The custom call lazuli.check_index_range(indices, limit): its result is `indices`; the run fails
// if one of them does not lie in [0, limit).
#pragma once

#include <memory>
#include <string_view>

#include "backend/runtime/thunk_data.h"

namespace lazuli::cpu {

inline constexpr std::string_view kCheckIndexRange = "lazuli.check_index_range";

// A reason unless indices are s32 or s64 and limit is s64[].
ThunkOrReason MakeIndexCheckThunk(const hlo::Instruction& instruction, BufferId indices,
                                  BufferId limit);
ThunkKind IndexCheckThunkKind();

}  // namespace lazuli::cpu
