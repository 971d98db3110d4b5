// Who takes part in a collective: what its attributes and the module's header say.
//
// Devices have numbers, replica * num_partitions + partition. Whether groups are of replicas, of
// partitions or of devices depends on opcode, channel_id and use_global_device_ids, as in XLA.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "ir/hlo/module.h"

namespace lazuli::hlo {

// An attribute of a collective as text has it; empty if it is not there.
std::string CollectiveAttribute(const Instruction& instruction, std::string_view name);

// The channel of a collective, a permutation, a send or a recv.
std::optional<int64_t> ChannelOf(const Instruction& instruction);

// Devices that the module is for.
int64_t DeviceCount(const Module& module);

// Whether PairsOf tells who takes part in it, and not GroupsOf.
inline bool IsPermute(Opcode opcode) {
  return opcode == Opcode::kCollectivePermute || opcode == Opcode::kCollectivePermuteStart;
}

// Groups of devices that exchange among themselves, in the order in which groups have them. Of a
// point-to-point one use PairsOf. An error says what is malformed.
absl::StatusOr<std::vector<Dims>> GroupsOf(const Instruction& instruction);
// Sources and targets of a permutation; each is a device at most once on either side.
absl::StatusOr<std::vector<std::pair<int64_t, int64_t>>> PairsOf(const Instruction& instruction);

}  // namespace lazuli::hlo
