#include "ir/hlo/collective.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "ir/hlo/text/cursor.h"
#include "ir/support/status.h"

namespace lazuli::hlo {
namespace {

constexpr int64_t kMostIds = int64_t{1} << 20;

// {{0,1},{2}} as lists; false if it is something else.
bool ParseLists(std::string_view text, std::vector<Dims>* lists) {
  Cursor in(text);
  if (!in.Try('{')) return false;
  if (in.Try('}')) return in.AtEnd();
  do {
    Dims& list = lists->emplace_back();
    if (!in.Expect('{')) return false;
    if (in.Try('}')) continue;
    do {
      if (!in.Integer(&list.emplace_back())) return false;
    } while (in.Try(','));
    if (!in.Expect('}')) return false;
  } while (in.Try(','));
  return in.Expect('}') && in.AtEnd();
}

// Integers between brackets.
bool ParseBracketed(Cursor& in, char open, char close, Dims* values) {
  if (!in.Try(open)) return false;
  do {
    if (!in.Integer(&values->emplace_back())) return false;
  } while (in.Try(','));
  return in.Try(close);
}

// [groups,size]<=[dims]T(permutation): the numbers 0, 1, ... as an array of dims, transposed, and cut
// into groups.
bool ParseIota(std::string_view text, std::vector<Dims>* lists) {
  Cursor in(text);
  Dims shape, dims, order;
  if (!ParseBracketed(in, '[', ']', &shape) || shape.size() != 2 || !in.Try("<=") ||
      !ParseBracketed(in, '[', ']', &dims))
    return false;
  order.resize(dims.size());
  std::iota(order.begin(), order.end(), 0);
  if (in.Try('T')) {
    order.clear();
    if (!ParseBracketed(in, '(', ')', &order)) return false;
  }
  int64_t count = 1;
  for (const int64_t d : dims) {
    if (d < 1 || count > kMostIds / d) return false;
    count *= d;
  }
  Dims sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t d = 0; d < sorted.size(); ++d) {
    if (sorted[d] != static_cast<int64_t>(d)) return false;
  }
  if (order.size() != dims.size() || shape[0] < 1 || shape[1] < 1 || count / shape[0] != shape[1] ||
      count % shape[0] != 0 || !in.AtEnd())
    return false;
  Dims strides(dims.size(), 1), at(dims.size(), 0);
  for (std::size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  for (int64_t i = 0; i < count; ++i) {
    if (i % shape[1] == 0) lists->emplace_back();
    int64_t id = 0;
    for (std::size_t k = 0; k < order.size(); ++k)
      id += at[k] * strides[static_cast<std::size_t>(order[k])];
    lists->back().push_back(id);
    for (std::size_t k = order.size(); k-- > 0;) {
      if (++at[k] < dims[static_cast<std::size_t>(order[k])]) break;
      at[k] = 0;
    }
  }
  return true;
}

int64_t HeaderCount(const Module& module, std::string_view wanted) {
  for (const auto& [name, value] : module.extra_attrs()) {
    int64_t count = 0;
    if (name == wanted && Cursor(value).Integer(&count) && count > 0 && count <= kMostIds)
      return count;
  }
  return 1;
}

// What the ids in groups are of.
enum class Ids : uint8_t { kReplicas, kPartitions, kDevices, kReplicasWithAllPartitions };

Ids IdsOf(const Instruction& i) {
  if (CollectiveAttribute(i, "channel_id").empty()) return Ids::kReplicas;
  if (CollectiveAttribute(i, "use_global_device_ids") == "true") return Ids::kDevices;
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

std::string_view CollectiveAttribute(const Instruction& instruction, std::string_view wanted) {
  Cursor in(instruction.attrs_as<CollectiveAttrs>().text);
  while (!in.AtEnd()) {
    const std::string_view name = in.TryIdentifier();
    std::string_view value;
    if (name.empty() || !in.Expect('=') || !in.RawValue(&value)) break;
    if (name == wanted) return value;
    if (!in.Try(',')) break;
  }
  return {};
}

int64_t DeviceCount(const Module& module) {
  return HeaderCount(module, "replica_count") * HeaderCount(module, "num_partitions");
}

absl::StatusOr<std::vector<Dims>> GroupsOf(const Instruction& i) {
  const std::string_view text = CollectiveAttribute(i, "replica_groups");
  const Module& module = *i.parent()->parent();
  const int64_t replicas = HeaderCount(module, "replica_count"),
                partitions = HeaderCount(module, "num_partitions");
  std::vector<Dims> ids;
  if (!text.empty() && !(text.starts_with('[') ? ParseIota(text, &ids) : ParseLists(text, &ids)))
    return InvalidArgument("replica_groups=", text, " are no groups of devices");
  std::set<int64_t> seen;
  for (const Dims& group : ids) {
    for (const int64_t id : group) {
      if (id < 0 || id > kMostIds || !seen.insert(id).second)
        return InvalidArgument("replica_groups=", text, " are no groups of devices");
    }
  }
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
  const std::string_view text = CollectiveAttribute(i, "source_target_pairs");
  std::vector<Dims> lists;
  const auto malformed = [&] {
    return InvalidArgument("source_target_pairs=", text, " are no pairs of devices");
  };
  if (!text.empty() && !ParseLists(text, &lists)) return malformed();
  const Module& module = *i.parent()->parent();
  const int64_t replicas = HeaderCount(module, "replica_count"),
                partitions = HeaderCount(module, "num_partitions");
  const bool of_replicas = IdsOf(i) == Ids::kReplicas;
  std::vector<std::pair<int64_t, int64_t>> pairs;
  std::set<int64_t> sources, targets;
  for (const Dims& pair : lists) {
    if (pair.size() != 2 || std::min(pair[0], pair[1]) < 0 ||
        std::max(pair[0], pair[1]) > kMostIds || !sources.insert(pair[0]).second ||
        !targets.insert(pair[1]).second)
      return malformed();
    const int64_t copies = IdsOf(i) == Ids::kDevices ? 1 : of_replicas ? partitions : replicas;
    for (int64_t other = 0; other < copies; ++other) {
      const auto device = [&](int64_t id) {
        return IdsOf(i) == Ids::kDevices ? id
               : of_replicas             ? id * partitions + other
                                         : other * partitions + id;
      };
      pairs.emplace_back(device(pair[0]), device(pair[1]));
    }
  }
  return pairs;
}

}  // namespace lazuli::hlo
