// Meshes, groups of devices and shardings as messages. Bytes may say what no text does: that is
// refused.

#include "ir/hlo/proto/proto_internal.h"
#include "ir/hlo/text/cursor.h"

namespace lazuli::hlo::internal {
namespace {

using Type = Sharding::Type;
constexpr int64_t kTypeCount = 7;

template <class T>
bool IsSaidByText(const T& value) {
  const std::string text = ToString(value);
  Cursor in(text);
  T again;
  return Parse(in, &again) && in.AtEnd() && again == value;
}

template <class V>
void Rows(V& v, typename V::template Ref<DeviceIota> iota) {
  v.Ints(1, iota.dims);
  v.Ints(2, iota.order);
}

void PartRows(FieldReader& v, AxisPart& part) {
  v.Int(1, part.axis);
  v.Message(2, [&](FieldReader& w) {
    w.Int(1, part.before);
    w.Int(2, part.size);
  });
}
void PartRows(FieldWriter& v, const AxisPart& part) {
  v.Int(1, part.axis);
  if (part.size == 0) return;
  v.Message(2, [&](FieldWriter& w) {
    w.Int(1, part.before);
    w.Int(2, part.size);
  });
}

template <class V>
void Parts(V& v, Tag tag, typename V::template Ref<std::vector<AxisPart>> parts) {
  v.Messages(tag, parts, [](V& w, auto& part) { PartRows(w, part); });
}

template <class V>
void Rows(V& v, typename V::template Ref<Mesh> mesh) {
  v.Messages(1, mesh.axes, [](V& axis, auto& a) {
    axis.Text(1, a.name);
    axis.Int(2, a.size);
  });
  v.Ints(2, mesh.device_ids);
  v.Message(3, [&](V& w) { Rows<V>(w, mesh.iota); });
}

// Bytes may leave the natural order out.
void FillOrder(DeviceIota& iota) {
  if (iota.order.empty()) iota.order = NaturalOrder(iota.dims.size());
}

// Numbers that nobody knows are not written.
void Line(FieldReader& v, Tag tag, int64_t& number) { v.Int(tag, number); }
void Line(FieldWriter& v, Tag tag, int64_t number) {
  if (number != 0) v.Int(tag, number);
}

template <class V>
void Notes(V& v, Tag tag, typename V::template Ref<std::vector<SourceNote>> notes) {
  v.Messages(tag, notes, [](V& w, auto& note) {
    w.Text(1, note.op_type);
    w.Text(2, note.op_name);
    w.Text(3, note.source_file);
    Line(w, 4, note.source_line);
    Line(w, 15, note.stack_frame_id);
    Line(w, 17, note.source_end_line);
    Line(w, 18, note.source_column);
    Line(w, 19, note.source_end_column);
  });
}

template <class V>
void Rows(V& v, typename V::template Ref<MeshSharding> s,
          typename V::template Ref<std::vector<SourceNote>> metadata) {
  v.Message(2, [&](V& w) { Rows<V>(w, s.mesh); });
  v.Messages(3, s.dims, [](V& w, auto& dim) {
    Parts(w, 1, dim.axes);
    w.Bool(2, dim.closed);
  });
  Parts(v, 4, s.replicated);
  Parts(v, 5, s.unreduced);
  Notes(v, 6, metadata);
  Parts(v, 7, s.manual);
}

template <class V>
void Rows(V& v, typename V::template Ref<Sharding> s) {
  v.Enum(1, s.type, kTypeCount);
  v.Ints(3, s.tiles);
  v.Ints(4, s.devices);
  v.Bool(6, s.replicates_last);
  Notes(v, 7, s.metadata);
  v.Ints(9, s.iota.dims);
  v.Ints(10, s.iota.order);
}

Sharding ReadOne(protozero::pbf_reader in, ProtoError& error, bool of_tuple) {
  Sharding s;
  bool grouped = false;
  Sharding::ShardGroup group;
  FieldReader::ReadAll(in, error, [&](FieldReader& v) {
    Rows<FieldReader>(v, s);
    if (v.AtMessage(5)) {
      if (of_tuple) return error.Note("a tuple of shardings lies in another");
      s.tuple.push_back(ReadOne(v.in().get_message(), error, true));
    }
    v.ForEachInt(8, [&](int64_t type) {
      if (type < 0 || type >= kTypeCount) return error.Note("there is no kind of sharding ", type);
      s.last_types.push_back(static_cast<Type>(type));
    });
    v.Bool(11, grouped);
    v.Int(12, group.id);
    v.Bool(13, group.like);
    v.Message(14, [&s](FieldReader& w) {
      if (!s.mesh) s.mesh.emplace();
      Rows<FieldReader>(w, *s.mesh, s.metadata);
    });
  });
  if (grouped) s.group = group;
  FillOrder(s.mesh ? s.mesh->mesh.iota : s.iota);
  // What the kind does not have says nothing.
  Sharding said;
  said.metadata = std::move(s.metadata);
  if (s.mesh) {
    said.mesh = std::move(s.mesh);
    return said;
  }
  said.type = s.type;
  said.tuple = std::move(s.tuple);
  if (s.type == Type::kTuple) return said;
  said.group = s.group;
  if (s.type == Type::kMaximal || s.iota.dims.empty()) said.devices = s.devices;
  if (s.type != Type::kTiled) return said;
  said.tiles = s.tiles;
  said.iota = s.iota;
  said.replicates_last = s.replicates_last;
  said.last_types = std::move(s.last_types);
  return said;
}

template <class V>
void Rows(V& v, typename V::template Ref<CountedGroups> counted) {
  v.Int(1, counted.groups);
  v.Int(2, counted.size);
  v.Ints(3, counted.iota.dims);
  v.Ints(4, counted.iota.order);
}
template <class V>
void Rows(V& v, typename V::template Ref<MeshGroups> along) {
  v.Message(1, [&](V& w) { Rows<V>(w, along.mesh); });
  Parts(v, 2, along.axes);
}

// Other fields than collective_device_list that hold groups: older and newer ones.
constexpr Tag kGroups = 49, kCounted = 92, kAlongMesh = 93;

template <class V>
void Ids(V& v, typename V::template Ref<Dims> ids) {
  v.Ints(1, ids);
}

ReplicaGroups ReadCounted(protozero::pbf_reader in, ProtoError& error) {
  CountedGroups counted;
  FieldReader::ReadAll(in, error, [&](FieldReader& v) { Rows<FieldReader>(v, counted); });
  FillOrder(counted.iota);
  return counted;
}

ReplicaGroups ReadList(protozero::pbf_reader in, ProtoError& error) {
  ListedGroups listed;
  ReplicaGroups counted;
  FieldReader::ReadAll(in, error, [&](FieldReader& v) {
    v.Messages(1, listed.groups, Ids<FieldReader>);
    if (v.AtMessage(2)) counted = ReadCounted(v.in().get_message(), error);
  });
  return counted.index() == 0 ? listed : counted;
}

ReplicaGroups ReadAlongMesh(protozero::pbf_reader in, ProtoError& error) {
  MeshGroups along;
  FieldReader::ReadAll(in, error, [&](FieldReader& v) { Rows<FieldReader>(v, along); });
  FillOrder(along.mesh.iota);
  return along;
}

}  // namespace

Sharding ReadSharding(protozero::pbf_reader in, ProtoError& error) {
  Sharding sharding = ReadOne(in, error, false);
  if (error.ok() && !IsSaidByText(sharding))
    error.Note("the sharding ", ToString(sharding), " is malformed");
  return sharding;
}

void WriteSharding(FieldWriter& v, const Sharding& s) {
  if (s.mesh)
    return v.Message(14, [&](FieldWriter& w) { Rows<FieldWriter>(w, *s.mesh, s.metadata); });
  Rows<FieldWriter>(v, s);
  v.Messages(5, s.tuple,
             [](FieldWriter& w, const Sharding& element) { WriteSharding(w, element); });
  Dims types;
  for (const Type type : s.last_types) types.push_back(static_cast<int64_t>(type));
  v.Ints(8, types);
  if (!s.group) return;
  v.Bool(11, true);
  v.Int(12, s.group->id);
  v.Bool(13, s.group->like);
}

void ReadReplicaGroups(FieldReader& v, Tag tag, ReplicaGroups& groups) {
  // An older field repeats what a newer one says.
  if (v.in().tag() == kGroups && !v.taken()) {
    if (groups.index() == 0) groups = ListedGroups();
    ListedGroups repeated;
    auto* const listed = std::get_if<ListedGroups>(&groups);
    v.Messages(kGroups, (listed != nullptr ? *listed : repeated).groups, Ids<FieldReader>);
  }
  for (const auto& [field, read] :
       {std::pair(tag, &ReadList), {kCounted, &ReadCounted}, {kAlongMesh, &ReadAlongMesh}}) {
    if (!v.AtMessage(field)) continue;
    ReplicaGroups other = read(v.in().get_message(), v.error());
    if (v.error().ok() && !IsSaidByText(other))
      v.error().Note("the groups of devices ", ToString(other), " are malformed");
    if (groups.index() == 0) groups = std::move(other);
  }
}

void WriteReplicaGroups(FieldWriter& v, Tag tag, const ReplicaGroups& groups) {
  if (const auto* const listed = std::get_if<ListedGroups>(&groups)) {
    std::string bytes;  // no list is a message, too
    protozero::pbf_writer message(bytes);
    FieldWriter(message).Messages(1, listed->groups, Ids<FieldWriter>);
    v.out().add_message(tag, bytes);
  } else if (const auto* const counted = std::get_if<CountedGroups>(&groups)) {
    v.Message(tag, [&](FieldWriter& w) {
      w.Message(2, [&](FieldWriter& c) { Rows<FieldWriter>(c, *counted); });
    });
  } else if (const auto* const along = std::get_if<MeshGroups>(&groups)) {
    v.Message(kAlongMesh, [&](FieldWriter& w) { Rows<FieldWriter>(w, *along); });
  }
}

}  // namespace lazuli::hlo::internal
