#include "ir/hlo/devices/collective.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "ir/hlo/attr_rows.h"
#include "ir/hlo/text/attr_text.h"
#include "ir/support/status.h"

namespace lazuli::hlo {
namespace {

// What the ids in groups are of.
enum class Ids : uint8_t { kReplicas, kPartitions, kDevices, kReplicasWithAllPartitions };

Ids IdsOf(const Instruction& i) {
  if (!ChannelOf(i)) return Ids::kReplicas;
  const auto* const attrs = std::get_if<CollectiveAttrs>(&i.attrs());
  if (attrs != nullptr && attrs->use_global_device_ids) return Ids::kDevices;
  switch (i.opcode()) {
    case Opcode::kAllToAll:
    case Opcode::kCollectiveBroadcast:
    case Opcode::kCollectivePermute:
    case Opcode::kCollectivePermuteStart:
    case Opcode::kRaggedAllToAll:
      return Ids::kPartitions;
    default:
      return Ids::kReplicasWithAllPartitions;
  }
}

}  // namespace

std::string CollectiveAttribute(const Instruction& instruction, std::string_view wanted) {
  std::string text;
  const auto find = [&]<class A>(const A& attrs) {
    ForEachTextRow<A>([&](const auto& row) {
      if (row.name != wanted || row.AtDefault(attrs)) return;
      row.Apply(attrs, [&](const auto&... value) { AppendValue(text, row.kForm, value...); });
    });
  };
  std::visit(find, instruction.attrs());
  return text;
}

std::optional<int64_t> ChannelOf(const Instruction& instruction) {
  return std::visit(
      [](const auto& attrs) -> std::optional<int64_t> {
        if constexpr (requires { attrs.channel_id; }) return attrs.channel_id;
        return std::nullopt;
      },
      instruction.attrs());
}

int64_t DeviceCount(const Module& module) {
  return module.replica_count() * module.num_partitions();
}

absl::StatusOr<std::vector<Dims>> GroupsOf(const Instruction& i) {
  const Module& module = *i.parent()->parent();
  const int64_t replicas = module.replica_count(), partitions = module.num_partitions();
  const auto* const attrs = std::get_if<CollectiveAttrs>(&i.attrs());
  LAZULI_ASSIGN_OR_RETURN(std::vector<Dims> ids,
                          Listed(attrs != nullptr ? attrs->replica_groups : ReplicaGroups()));
  const Ids of = IdsOf(i);
  if (ids.empty()) {
    const int64_t count = of == Ids::kPartitions ? partitions
                          : of == Ids::kDevices  ? replicas * partitions
                                                 : replicas;
    ids.emplace_back(static_cast<std::size_t>(count));
    std::iota(ids[0].begin(), ids[0].end(), 0);
  }
  if (of == Ids::kDevices) return ids;
  std::vector<Dims> groups;
  for (const Dims& group : ids) {
    if (of == Ids::kReplicasWithAllPartitions) {
      Dims& all = groups.emplace_back();
      for (const int64_t replica : group) {
        for (int64_t p = 0; p < partitions; ++p) all.push_back(replica * partitions + p);
      }
      continue;
    }
    // One such group in each partition, or in each replica.
    const bool of_replicas = of == Ids::kReplicas;
    for (int64_t other = 0; other < (of_replicas ? partitions : replicas); ++other) {
      Dims& one = groups.emplace_back();
      for (const int64_t id : group)
        one.push_back(of_replicas ? id * partitions + other : other * partitions + id);
    }
  }
  return groups;
}

absl::StatusOr<std::vector<std::pair<int64_t, int64_t>>> PairsOf(const Instruction& i) {
  const DevicePairs& ids = i.attrs_as<PermuteAttrs>().source_target_pairs;
  const Module& module = *i.parent()->parent();
  const int64_t replicas = module.replica_count(), partitions = module.num_partitions();
  const bool of_replicas = IdsOf(i) == Ids::kReplicas;
  DevicePairs pairs;
  std::set<int64_t> sources, targets;
  for (const auto& [source, target] : ids) {
    if (std::min(source, target) < 0 || std::max(source, target) > kMostDevices ||
        !sources.insert(source).second || !targets.insert(target).second)
      return InvalidArgument("source_target_pairs=", ToString(ids), " are not pairs of devices");
    for (int64_t other = 0; other < (of_replicas ? partitions : replicas); ++other) {
      const auto device = [&](int64_t id) {
        return of_replicas ? id * partitions + other : other * partitions + id;
      };
      pairs.emplace_back(device(source), device(target));
    }
  }
  return pairs;
}

}  // namespace lazuli::hlo
