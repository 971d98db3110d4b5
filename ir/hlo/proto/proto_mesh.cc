// Message NamedSharding - a sharding by the axes of a mesh of devices - as text and back:
//
//   {mesh['a'=2,'b'=4], device_ids=(3,2,1,0), [{'a', ?}, {'b':(1)2}], replicated={'b'}}
//   {maximal_mesh[device_id=3]}

#include "ir/hlo/proto/proto_internal.h"
#include "ir/hlo/text/parser_internal.h"

namespace lazuli::hlo::internal {
namespace {

struct Axis {
  std::string name;
  int64_t size = 0;
};
// An axis, or the part of `size` of it that comes behind `before` devices.
struct AxisPart {
  int64_t axis = 0;
  int64_t before = 0, size = 0;  // no size: all of the axis
};
struct ShardedDim {
  std::vector<AxisPart> axes;
  bool closed = false;  // not to be sharded further
};
struct Mesh {
  std::vector<Axis> axes;
  Dims device_ids;             // listed, or
  Dims iota_dims, iota_order;  // counted: an iota of these dims, transposed
};
struct MeshSharding {
  Mesh mesh;
  std::vector<ShardedDim> dims;
  std::vector<AxisPart> replicated, unreduced, manual;
  std::vector<SourceNote> metadata;
};

// --- fields, read and written alike

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

void IotaRows(FieldReader& v, Mesh& mesh) {
  v.Message(3, [&](FieldReader& w) {
    w.Ints(1, mesh.iota_dims);
    w.Ints(2, mesh.iota_order);
  });
}
void IotaRows(FieldWriter& v, const Mesh& mesh) {
  if (mesh.iota_dims.empty()) return;
  v.Message(3, [&](FieldWriter& w) {
    w.Ints(1, mesh.iota_dims);
    w.Ints(2, mesh.iota_order);
  });
}

template <class V>
void Rows(V& v, typename V::template Ref<MeshSharding> s) {
  v.Message(2, [&](V& w) {
    w.Messages(1, s.mesh.axes, [](V& axis, auto& a) {
      axis.Text(1, a.name);
      axis.Int(2, a.size);
    });
    w.Ints(2, s.mesh.device_ids);
    IotaRows(w, s.mesh);
  });
  v.Messages(3, s.dims, [](V& w, auto& dim) {
    Parts(w, 1, dim.axes);
    w.Bool(2, dim.closed);
  });
  Parts(v, 4, s.replicated);
  Parts(v, 5, s.unreduced);
  v.Messages(6, s.metadata, [](V& w, auto& note) { NoteRows(w, note); });
  Parts(v, 7, s.manual);
}

// --- printing

std::string Text(const AxisPart& part, const Mesh& mesh) {
  const auto axis = static_cast<std::size_t>(part.axis);
  if (part.axis < 0 || axis >= mesh.axes.size()) return "'?'";
  const std::string whole = Str("'", mesh.axes[axis].name, "'");
  return part.size == 0 ? whole : Str(whole, ":(", part.before, ")", part.size);
}

std::string Text(const std::vector<AxisPart>& parts, const Mesh& mesh) {
  std::string text;
  for (const AxisPart& part : parts) text += Str(text.empty() ? "" : ", ", Text(part, mesh));
  return text;
}

std::string Text(const Mesh& mesh) {
  std::string text = "mesh[";
  for (std::size_t i = 0; i < mesh.axes.size(); ++i)
    text += Str(i == 0 ? "'" : ",'", mesh.axes[i].name, "'=", mesh.axes[i].size);
  text += ']';
  if (!mesh.device_ids.empty()) text += Str(", device_ids=(", Join(mesh.device_ids, ","), ")");
  if (!mesh.iota_dims.empty())
    text +=
        Str(", device_ids=([", Join(mesh.iota_dims, ","), "]T(", Join(mesh.iota_order, ","), "))");
  return text;
}

std::string Text(const MeshSharding& s) {
  if (s.mesh.axes.empty() && s.mesh.device_ids.size() == 1)
    return Str("{maximal_mesh[device_id=", s.mesh.device_ids[0], "]}");
  std::string text = Str("{", Text(s.mesh), s.dims.empty() ? ", replicated" : ", [");
  for (std::size_t d = 0; d < s.dims.size(); ++d) {
    const std::string axes = Text(s.dims[d].axes, s.mesh);
    const bool open = !s.dims[d].closed;
    text +=
        Str(d == 0 ? "{" : ", {", axes, open && !axes.empty() ? ", " : "", open ? "?" : "", "}");
  }
  if (!s.dims.empty()) text += ']';
  const auto list = [&](std::string_view name, const std::vector<AxisPart>& parts) {
    if (!parts.empty()) text += Str(", ", name, "={", Text(parts, s.mesh), "}");
  };
  list("replicated", s.replicated);
  list("unreduced", s.unreduced);
  list("manual", s.manual);
  if (!s.metadata.empty()) text += Str(", metadata={", NotesText(s.metadata), "}");
  return Str(text, "}");
}

// --- parsing

bool ParsePart(Cursor& in, const Mesh& mesh, AxisPart* part) {
  std::string name;
  if (!in.String(&name)) return false;
  while (part->axis < static_cast<int64_t>(mesh.axes.size()) &&
         mesh.axes[static_cast<std::size_t>(part->axis)].name != name)
    ++part->axis;
  if (part->axis == static_cast<int64_t>(mesh.axes.size())) return in.Fail("no axis '", name, "'");
  if (!in.Try(':')) return true;
  return in.Expect('(') && in.Integer(&part->before) && in.Expect(')') && in.Integer(&part->size);
}

// {'a', 'b', ?}; without the question mark the list is closed.
bool ParseParts(Cursor& in, const Mesh& mesh, std::vector<AxisPart>* parts, bool* closed) {
  *closed = true;
  if (!in.Expect('{')) return false;
  while (!in.Try('}')) {
    if (in.Try('?')) {
      *closed = false;
    } else if (!ParsePart(in, mesh, &parts->emplace_back())) {
      return false;
    }
    if (!in.Try(',') && in.Peek() != '}') return in.Expect('}');
  }
  return true;
}

bool ParseNumbers(Cursor& in, Dims* values) {
  do {
    if (!in.Integer(&values->emplace_back())) return false;
  } while (in.Try(','));
  return true;
}

// (3,2,1,0) or ([4,2]T(1,0))
bool ParseDeviceIds(Cursor& in, Mesh* mesh) {
  if (!in.Expect('(')) return false;
  if (!in.Try('[')) return ParseNumbers(in, &mesh->device_ids) && in.Expect(')');
  if (!ParseNumbers(in, &mesh->iota_dims) || !in.Expect(']')) return false;
  if (in.Try("T(") && !(ParseNumbers(in, &mesh->iota_order) && in.Expect(')'))) return false;
  return in.Expect(')');
}

bool ParseAxes(Cursor& in, Mesh* mesh) {
  while (!in.Try(']')) {
    Axis& axis = mesh->axes.emplace_back();
    if (!in.String(&axis.name) || !in.Expect('=') || !in.Integer(&axis.size)) return false;
    if (!in.Try(',') && in.Peek() != ']') return in.Expect(']');
  }
  return true;
}

bool ParseShardedDims(Cursor& in, MeshSharding* s) {
  while (!in.Try(']')) {
    ShardedDim& dim = s->dims.emplace_back();
    if (!ParseParts(in, s->mesh, &dim.axes, &dim.closed)) return false;
    if (!in.Try(',') && in.Peek() != ']') return in.Expect(']');
  }
  return true;
}

// What follows the mesh, one part behind each comma.
bool ParseMember(Cursor& in, MeshSharding* s) {
  if (in.Try('[')) return ParseShardedDims(in, s);
  const std::string_view name = in.TryIdentifier();
  if (name == "replicated" && in.Peek() != '=') return true;
  if (!in.Expect('=')) return false;
  bool closed = true;
  std::string_view notes;
  if (name == "device_ids") return ParseDeviceIds(in, &s->mesh);
  if (name == "replicated") return ParseParts(in, s->mesh, &s->replicated, &closed);
  if (name == "unreduced") return ParseParts(in, s->mesh, &s->unreduced, &closed);
  if (name == "manual") return ParseParts(in, s->mesh, &s->manual, &closed);
  if (name != "metadata" || !in.Balanced(&notes)) return false;
  s->metadata = ParseNotes(notes);
  return true;
}

bool Parse(std::string_view text, MeshSharding* s) {
  Cursor in(text);
  if (in.Try("{maximal_mesh[device_id="))
    return in.Integer(&s->mesh.device_ids.emplace_back()) && in.Expect("]}");
  if (!in.Expect("{mesh[") || !ParseAxes(in, &s->mesh)) return false;
  while (in.Try(',')) {
    if (!ParseMember(in, s)) return false;
  }
  return in.Expect('}');
}

}  // namespace

bool IsMeshSharding(std::string_view text) {
  return text.starts_with("{mesh[") || text.starts_with("{maximal_mesh[");
}

std::string ReadMeshSharding(protozero::pbf_reader in, ProtoError& error) {
  MeshSharding s;
  FieldReader::ReadAll(in, error, [&](FieldReader& v) { Rows(v, s); });
  return Text(s);
}

void WriteMeshSharding(FieldWriter& v, std::string_view text) {
  MeshSharding s;
  if (Parse(text, &s)) Rows(v, s);
}

}  // namespace lazuli::hlo::internal
