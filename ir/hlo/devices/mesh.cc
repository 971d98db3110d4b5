#include "ir/hlo/devices/mesh.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "ir/hlo/text/cursor.h"
#include "ir/support/status.h"

namespace lazuli::hlo {
namespace {

// 'a', or a without quotes.
bool ParseAxisName(Cursor& in, std::string* name) {
  *name = in.TryIdentifier();
  return !name->empty() || in.String(name);
}

// (3,2,1,0) or ([4,2]T(1,0))
bool ParseDeviceIds(Cursor& in, Mesh* mesh) {
  if (!in.Expect('(')) return false;
  const bool listed = in.Peek() != '[';
  return (listed ? ParseNumbers(in, &mesh->device_ids) : Parse(in, &mesh->iota)) && in.Expect(')');
}

// The devices of a mesh in the order of its axes, the last one fastest.
absl::StatusOr<Dims> DevicesOf(const Mesh& mesh) {
  Dims sizes;
  for (const MeshAxis& axis : mesh.axes) sizes.push_back(axis.size);
  if (!mesh.iota.dims.empty()) return NumbersOf(mesh.iota);
  if (!mesh.device_ids.empty()) return mesh.device_ids;
  return NumbersOf({sizes, NaturalOrder(sizes.size())});
}

// Where a part of an axis begins and ends: the devices before it, and with it.
std::pair<int64_t, int64_t> RangeOf(const AxisPart& part, const Mesh& mesh) {
  if (part.size != 0) return {part.before, part.before * part.size};
  return {1, mesh.axes[static_cast<std::size_t>(part.axis)].size};
}

// All axes, cut where parts begin and end.
absl::StatusOr<std::vector<AxisPart>> CutAxes(const Mesh& mesh,
                                              const std::vector<AxisPart>& parts) {
  std::vector<Dims> cuts;
  for (const MeshAxis& axis : mesh.axes) cuts.push_back({1, axis.size});
  for (const AxisPart& part : parts) {
    const bool known = part.axis >= 0 && part.axis < std::ssize(cuts);
    const int64_t whole = known ? mesh.axes[static_cast<std::size_t>(part.axis)].size : 0;
    const bool fits = part.size == 0 ||
                      (part.before >= 1 && part.size >= 1 && part.before <= whole &&
                       part.size <= whole / part.before && whole % (part.before * part.size) == 0);
    if (!known || !fits)
      return InvalidArgument(ToString(part, mesh), " is not a part of an axis of ", ToString(mesh));
    const auto [begin, end] = RangeOf(part, mesh);
    Dims& of = cuts[static_cast<std::size_t>(part.axis)];
    of.insert(of.end(), {begin, end});
  }
  std::vector<AxisPart> pieces;
  for (std::size_t axis = 0; axis < cuts.size(); ++axis) {
    Dims& of = cuts[axis];
    std::sort(of.begin(), of.end());
    of.erase(std::unique(of.begin(), of.end()), of.end());
    for (std::size_t i = 0; i + 1 < of.size(); ++i) {
      if (of[i] < 1 || of[i + 1] % of[i] != 0)
        return InvalidArgument("parts of an axis of ", ToString(mesh), " overlap");
      pieces.push_back({static_cast<int64_t>(axis), of[i], of[i + 1] / of[i]});
    }
  }
  return pieces;
}

}  // namespace

Dims NaturalOrder(std::size_t rank) {
  Dims order(rank);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

bool ParseNumbers(Cursor& in, Dims* values) {
  do {
    if (!in.Integer(&values->emplace_back())) return false;
  } while (in.Try(','));
  return true;
}

bool ParseNumbers(Cursor& in, char open, char close, Dims* values) {
  return in.Expect(open) && ParseNumbers(in, values) && in.Expect(close);
}

std::string ToString(const DeviceIota& iota) {
  std::string text = Str("[", Join(iota.dims, ","), "]");
  if (!std::is_sorted(iota.order.begin(), iota.order.end()))
    text += Str("T(", Join(iota.order, ","), ")");
  return text;
}

bool Parse(Cursor& in, DeviceIota* iota) {
  if (!ParseNumbers(in, '[', ']', &iota->dims)) return false;
  if (in.Try('T')) return ParseNumbers(in, '(', ')', &iota->order);
  iota->order = NaturalOrder(iota->dims.size());
  return true;
}

absl::StatusOr<Dims> NumbersOf(const DeviceIota& iota) {
  const auto& [dims, order] = iota;
  int64_t count = 1;
  for (const int64_t d : dims) {
    if (d < 1 || count > kMostDevices / d)
      return InvalidArgument(ToString(iota), " is not an array of devices");
    count *= d;
  }
  Dims sorted = order;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != NaturalOrder(dims.size()))
    return InvalidArgument(ToString(iota), " does not order its dimensions");
  Dims strides(dims.size(), 1), at(dims.size(), 0), numbers(static_cast<std::size_t>(count));
  for (std::size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  for (int64_t& number : numbers) {
    for (std::size_t k = 0; k < order.size(); ++k)
      number += at[k] * strides[static_cast<std::size_t>(order[k])];
    for (std::size_t k = order.size(); k-- > 0;) {
      if (++at[k] < dims[static_cast<std::size_t>(order[k])]) break;
      at[k] = 0;
    }
  }
  return numbers;
}

std::string ToString(const Mesh& mesh) {
  std::string text = "mesh[";
  for (std::size_t i = 0; i < mesh.axes.size(); ++i)
    text += Str(i == 0 ? "'" : ",'", mesh.axes[i].name, "'=", mesh.axes[i].size);
  text += ']';
  if (!mesh.device_ids.empty()) text += Str(", device_ids=(", Join(mesh.device_ids, ","), ")");
  if (!mesh.iota.dims.empty()) text += Str(", device_ids=(", ToString(mesh.iota), ")");
  return text;
}

bool Parse(Cursor& in, Mesh* mesh) {
  if (!in.Expect("mesh[")) return false;
  while (!in.Try(']')) {
    MeshAxis& axis = mesh->axes.emplace_back();
    if (!ParseAxisName(in, &axis.name) || !in.Expect('=') || !in.Integer(&axis.size)) return false;
    if (!in.Try(',') && in.Peek() != ']') return in.Expect(']');
  }
  const char* const end = in.position();
  if (in.Try(',') && in.Try("device_ids=")) return ParseDeviceIds(in, mesh);
  in.set_position(end);
  return true;
}

std::string ToString(const AxisPart& part, const Mesh& mesh) {
  const auto axis = static_cast<std::size_t>(part.axis);
  if (part.axis < 0 || axis >= mesh.axes.size()) return "'?'";
  const std::string whole = Str("'", mesh.axes[axis].name, "'");
  return part.size == 0 ? whole : Str(whole, ":(", part.before, ")", part.size);
}

bool Parse(Cursor& in, const Mesh& mesh, AxisPart* part) {
  std::string name;
  in.Peek();
  const char* const start = in.position();
  if (!ParseAxisName(in, &name)) return false;
  const auto axis = std::find_if(mesh.axes.begin(), mesh.axes.end(),
                                 [&](const MeshAxis& a) { return a.name == name; });
  if (axis == mesh.axes.end()) return in.FailAt(start, "the mesh has no axis '", name, "'");
  part->axis = axis - mesh.axes.begin();
  if (!in.Try(':')) return true;
  return in.Expect('(') && in.Integer(&part->before) && in.Expect(')') && in.Integer(&part->size);
}

absl::StatusOr<std::vector<Dims>> GroupsAlong(const Mesh& mesh,
                                              const std::vector<AxisPart>& parts) {
  LAZULI_ASSIGN_OR_RETURN(const std::vector<AxisPart> pieces, CutAxes(mesh, parts));
  Dims inside;
  for (const AxisPart& part : parts) {
    const auto [begin, end] = RangeOf(part, mesh);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i].axis == part.axis && pieces[i].before >= begin &&
          pieces[i].before * pieces[i].size <= end)
        inside.push_back(static_cast<int64_t>(i));
    }
  }
  DeviceIota places;
  for (const AxisPart& piece : pieces) {
    if (std::find(inside.begin(), inside.end(), std::ssize(places.dims)) == inside.end())
      places.order.push_back(std::ssize(places.dims));
    places.dims.push_back(piece.size);
  }
  places.order.insert(places.order.end(), inside.begin(), inside.end());
  int64_t size = 1;
  for (const int64_t piece : inside) size *= places.dims[static_cast<std::size_t>(piece)];
  LAZULI_ASSIGN_OR_RETURN(const Dims devices, DevicesOf(mesh));
  LAZULI_ASSIGN_OR_RETURN(const Dims numbers, NumbersOf(places));
  if (devices.size() != numbers.size())
    return InvalidArgument(ToString(mesh), " has ", devices.size(), " devices for ", numbers.size(),
                           " places");
  std::vector<Dims> groups;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (static_cast<int64_t>(i) % size == 0) groups.emplace_back();
    groups.back().push_back(devices[static_cast<std::size_t>(numbers[i])]);
  }
  return groups;
}

}  // namespace lazuli::hlo
