// Who exchanges with whom in a collective, as its attributes say.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

#include "ir/hlo/devices/mesh.h"

namespace lazuli::hlo {

// {{0,1},{2,3}}; without a list everybody is one group.
struct ListedGroups {
  std::vector<Dims> groups;
  bool operator==(const ListedGroups&) const = default;
};
// [2,4]<=[4,2]T(1,0): numbers that are counted, cut into groups.
struct CountedGroups {
  int64_t groups = 0, size = 0;
  DeviceIota iota;
  bool operator==(const CountedGroups&) const = default;
};
// mesh['a'=2,'b'=4] {'b'}: the devices along these axes.
struct MeshGroups {
  Mesh mesh;
  std::vector<AxisPart> axes;
  bool operator==(const MeshGroups&) const = default;
};

// Nothing where the attribute is not there, which means the same as an empty list.
using ReplicaGroups = std::variant<std::monostate, ListedGroups, CountedGroups, MeshGroups>;
std::string ToString(const ReplicaGroups& groups);
bool Parse(Cursor& in, ReplicaGroups* groups);
// The groups one by one; none if everybody is one group. Each id is in one group at most.
absl::StatusOr<std::vector<Dims>> Listed(const ReplicaGroups& groups);

// {{0,1},{1,2}}: sources and targets.
using DevicePairs = std::vector<std::pair<int64_t, int64_t>>;
std::string ToString(const DevicePairs& pairs);
bool Parse(Cursor& in, DevicePairs* pairs);

}  // namespace lazuli::hlo
