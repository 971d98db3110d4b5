// Where the parts of an array lie: XLA's OpSharding as a value.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/hlo/devices/mesh.h"

namespace lazuli::hlo {

// Where a sharding comes from: {op_name="x" source_line=4}.
struct SourceNote {
  std::string op_type, op_name, source_file;
  int64_t source_line = 0, source_end_line = 0, source_column = 0, source_end_column = 0,
          stack_frame_id = 0;
  bool operator==(const SourceNote&) const = default;
};

// By the axes of a mesh: {mesh['a'=2,'b'=4], [{'a', ?}, {'b':(1)2}], replicated={'b'}}, or one
// device of a mesh: {maximal_mesh[device_id=3]}.
struct MeshSharding {
  struct Dim {
    std::vector<AxisPart> axes;
    bool closed = false;  // not to be sharded further
    bool operator==(const Dim&) const = default;
  };
  Mesh mesh;
  std::vector<Dim> dims;
  std::vector<AxisPart> replicated, unreduced, manual;
  std::string unreduced_kind;  // "max" of unreduced=max{'a'}; sums have none. Bytes do not have it
  bool operator==(const MeshSharding&) const = default;
};

struct Sharding {
  enum class Type : uint8_t {
    kReplicated,
    kMaximal,  // all of it on one device
    kTuple,    // a sharding for each leaf
    kTiled,
    kManual,
    kUnknown,
    kUnreduced,
  };
  // This must be sharded as others of the group, or like them if possible.
  struct ShardGroup {
    bool like = false;
    int64_t id = 0;
    bool operator==(const ShardGroup&) const = default;
  };
  Type type = Type::kReplicated;
  Dims tiles;       // {devices=[2,1,2]0,1,2,3}: parts along each dimension, then of last_types
  Dims devices;     // of the tiles, last dimension fastest; the one device of kMaximal
  DeviceIota iota;  // in the place of devices: {devices=[2,2]<=[4]}
  bool replicates_last = false;
  std::vector<Type> last_types;  // what holds along the last dimensions of the tiles
  std::optional<ShardGroup> group;
  std::vector<SourceNote> metadata;
  std::vector<Sharding> tuple;
  std::optional<MeshSharding> mesh;  // then nothing else is set, but metadata
  bool operator==(const Sharding&) const = default;
};

std::string ToString(const Sharding& sharding);
bool Parse(Cursor& in, Sharding* sharding);

// A sharding that instructions share, or none; equal ones have equal shardings.
class ShardingPtr {
 public:
  ShardingPtr() = default;
  explicit(false) ShardingPtr(Sharding sharding)
      : sharding_(std::make_shared<const Sharding>(std::move(sharding))) {}
  explicit operator bool() const { return sharding_ != nullptr; }
  const Sharding& operator*() const { return *sharding_; }
  const Sharding* operator->() const { return sharding_.get(); }
  bool operator==(const ShardingPtr& other) const {
    return sharding_ == other.sharding_ ||
           (sharding_ != nullptr && other.sharding_ != nullptr && *sharding_ == *other.sharding_);
  }

 private:
  std::shared_ptr<const Sharding> sharding_;
};

}  // namespace lazuli::hlo
