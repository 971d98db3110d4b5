// Who takes part in a collective: what its attributes, kept as written, and the module's header say.
//
// Devices have numbers, replica * num_partitions + partition. Whether groups are of replicas, of
// partitions or of devices depends on opcode, channel_id and use_global_device_ids, as in XLA.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "ir/hlo/module.h"

namespace lazuli::hlo {

// The value of one of the attributes that are kept as written; empty if it is not there.
std::string_view CollectiveAttribute(const Instruction& instruction, std::string_view name);

// Devices that the module is for: replica_count * num_partitions of its header.
int64_t DeviceCount(const Module& module);

// Groups of devices that exchange among themselves, in the order in which groups have them. Of a
// point-to-point one use PairsOf. An error says what is malformed.
absl::StatusOr<std::vector<Dims>> GroupsOf(const Instruction& instruction);
// Sources and targets of a permutation; each is a device at most once on either side.
absl::StatusOr<std::vector<std::pair<int64_t, int64_t>>> PairsOf(const Instruction& instruction);

}  // namespace lazuli::hlo
