// The custom call lazuli.check_index_range(indices, limit): its result is `indices`; the run fails
// if one of them does not lie in [0, limit).
#pragma once

#include <memory>
#include <string_view>

#include "backend/runtime/thunk.h"

namespace lazuli::cpu {

inline constexpr std::string_view kCheckIndexRange = "lazuli.check_index_range";

// nullptr unless indices are s32 or s64 and limit is s64[].
std::unique_ptr<Thunk> MakeIndexCheckThunk(const hlo::Instruction& instruction, BufferId indices,
                                           BufferId limit);

}  // namespace lazuli::cpu
