// Arrays of devices: numbers counted in some order, and meshes, whose axes have names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "ir/types/shape.h"

namespace lazuli::hlo {

class Cursor;

// More devices are not named by any text.
inline constexpr int64_t kMostDevices = int64_t{1} << 20;

// The numbers 0, 1, ... as an array of `dims`, transposed: dimension k of the result is dimension
// order[k] of the array. In text [4,2]T(1,0), or [8] where the order is the natural one.
struct DeviceIota {
  Dims dims, order;
  bool operator==(const DeviceIota&) const = default;
};
Dims NaturalOrder(std::size_t rank);  // 0, 1, ...
std::string ToString(const DeviceIota& iota);
bool Parse(Cursor& in, DeviceIota* iota);
// The numbers, the last dimension fastest; an error if `order` does not order the dims, or if there
// are too many.
absl::StatusOr<Dims> NumbersOf(const DeviceIota& iota);

struct MeshAxis {
  std::string name;
  int64_t size = 0;
  bool operator==(const MeshAxis&) const = default;
};
// An axis of a mesh, by its number, or the part of `size` of it that comes behind `before` devices:
// 'a', 'b':(2)4.
struct AxisPart {
  int64_t axis = 0;
  int64_t before = 0, size = 0;  // no size: all of the axis
  bool operator==(const AxisPart&) const = default;
};
// mesh['a'=2,'b'=4], device_ids=(3,2,1,0,7,6,5,4). Without the list the devices are counted.
struct Mesh {
  std::vector<MeshAxis> axes;
  Dims device_ids;
  DeviceIota iota;  // in the place of device_ids: device_ids=([4,2]T(1,0))
  bool operator==(const Mesh&) const = default;
};
std::string ToString(const Mesh& mesh);
bool Parse(Cursor& in, Mesh* mesh);
std::string ToString(const AxisPart& part, const Mesh& mesh);
bool Parse(Cursor& in, const Mesh& mesh, AxisPart* part);
// The devices along the parts of the axes, one list for each place of the others.
absl::StatusOr<std::vector<Dims>> GroupsAlong(const Mesh& mesh, const std::vector<AxisPart>& parts);

// Numbers up to something else, and between brackets.
bool ParseNumbers(Cursor& in, Dims* values);
bool ParseNumbers(Cursor& in, char open, char close, Dims* values);

}  // namespace lazuli::hlo
