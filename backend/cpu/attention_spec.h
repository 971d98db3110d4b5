// The spec of the kernel for a fusion that passes/fuse_attention.h made.
#pragma once

#include <optional>
#include <vector>

#include "backend/cpu/runtime/attention.h"
#include "ir/hlo/module.h"

namespace lazuli::cpu {

// Takes the buffers of the fusion's operands and of the leaves of its result, all row-major.
// Nothing if the body is not attention.
std::optional<AttentionSpec> PlanAttention(const hlo::Instruction& fusion,
                                           const std::vector<BufferId>& operands,
                                           const std::vector<BufferId>& results, int64_t threads);

}  // namespace lazuli::cpu
