// What of collectives the compiler has programs for.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"

#include "backend/npu/sim/config.h"
#include "backend/npu/sim/namespace.h"
#include "backend/runtime/refusal.h"
#include "ir/hlo/module.h"

namespace lazuli::npu {

// Collectives between devices, each the device of the machine that its number says: groups may have
// one member, too.
bool IsCollective(const hlo::Instruction& instruction);
std::optional<Refusal> WhyNotCollective(const hlo::Instruction& instruction, const Config& config);

// Of each device, who has to run the collective with it, itself among them, ascending. An error names
// a device that the machine does not have.
absl::StatusOr<std::vector<std::vector<int>>> MeetingsOf(const hlo::Instruction& instruction,
                                                         const Config& config);

}  // namespace lazuli::npu
