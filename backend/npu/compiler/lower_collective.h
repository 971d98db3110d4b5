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

// The collective itself, or those in loops and branches that the instruction runs.
std::vector<const hlo::Instruction*> CollectivesIn(const hlo::Instruction& instruction);

// Who runs a program with collectives together.
struct Meetings {
  std::vector<std::vector<int>> of_device;  // of each device, itself among them, ascending
  // Each collective is between all who run the program; else all devices run it, and so they meet at each.
  bool one_group = true;
  bool any() const;  // of several devices
};

// Of all collectives in the instruction. An error names a device that the machine does not have, or two collectives inside a loop
// that are between different devices.
absl::StatusOr<Meetings> MeetingsOf(const hlo::Instruction& instruction, const Config& config);

}  // namespace lazuli::npu
