#include "ir/hlo/devices/sharding.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "ir/hlo/text/attr_text.h"
#include "ir/hlo/text/cursor.h"
#include "ir/support/str.h"

namespace lazuli::hlo {
namespace {

using Type = Sharding::Type;

// Words of types, by number; a tuple and tiles are spelled otherwise.
constexpr std::string_view kTypes[] = {"replicated", "maximal", "",         "",
                                       "manual",     "unknown", "unreduced"};
std::string_view Word(Type type) { return kTypes[static_cast<std::size_t>(type)]; }

bool ParseWord(Cursor& in, Type* type) {
  in.Peek();
  const char* const start = in.position();
  const std::string_view word = in.TryIdentifier();
  const auto* const at = std::find(std::begin(kTypes), std::end(kTypes), word);
  if (word.empty() || at == std::end(kTypes))
    return in.FailAt(start, "expected a kind of sharding, such as replicated or devices=[2]0,1");
  *type = static_cast<Type>(at - std::begin(kTypes));
  return true;
}

// --- notes

// The members as text has them.
template <class Note>
auto MembersOf(Note& note) {
  return std::tuple(std::pair("op_type", &note.op_type), std::pair("op_name", &note.op_name),
                    std::pair("source_file", &note.source_file),
                    std::pair("source_line", &note.source_line),
                    std::pair("source_end_line", &note.source_end_line),
                    std::pair("source_column", &note.source_column),
                    std::pair("source_end_column", &note.source_end_column),
                    std::pair("stack_frame_id", &note.stack_frame_id));
}

std::string Text(const SourceNote& note) {
  std::string text = "{";
  const auto member = [&text](const auto& row) {
    const auto& [name, value] = row;
    if (*value == std::decay_t<decltype(*value)>{}) return;
    text += Str(text.size() > 1 ? " " : "", name, "=");
    if constexpr (std::is_same_v<decltype(value), const std::string* const>) {
      AppendQuoted(text, *value);
    } else {
      AppendTo(text, *value);
    }
  };
  std::apply([&](const auto&... row) { (member(row), ...); }, MembersOf(note));
  return text + "}";
}

bool ReadMember(Cursor& in, std::string* value) { return in.String(value); }
bool ReadMember(Cursor& in, int64_t* value) { return in.Integer(value); }

// Members that nobody knows are dropped.
bool Parse(Cursor& in, SourceNote* note) {
  if (!in.Expect('{')) return false;
  while (!in.Try('}')) {
    const std::string_view name = in.TryIdentifier();
    if (name.empty()) return in.Fail("expected a member of metadata");
    if (!in.Expect('=')) return false;
    bool known = false, ok = true;
    const auto member = [&](const auto& row) {
      if (row.first != name) return;
      known = true;
      ok = ReadMember(in, row.second);
    };
    std::apply([&](const auto&... row) { (member(row), ...); }, MembersOf(*note));
    std::string_view ignored;
    if (!ok || (!known && !in.RawValue(&ignored))) return false;
    in.Try(',');
  }
  return true;
}

std::string Text(const std::vector<SourceNote>& notes, bool list) {
  std::string text;
  for (const SourceNote& note : notes) text += Str(text.empty() ? "" : ", ", Text(note));
  return list ? Str("{", text, "}") : text;
}

// A note, or a list of them.
bool Parse(Cursor& in, std::vector<SourceNote>* notes) {
  const char* const start = (in.Peek(), in.position());
  if (!in.Expect('{')) return false;
  if (in.Peek() != '{') {
    in.set_position(start);
    return Parse(in, &notes->emplace_back());
  }
  do {
    if (!Parse(in, &notes->emplace_back())) return false;
  } while (in.Try(',') || in.Peek() == '{');
  return in.Expect('}');
}

// --- shardings by a mesh

std::string Text(const std::vector<AxisPart>& parts, const Mesh& mesh) {
  std::string text;
  for (const AxisPart& part : parts) text += Str(text.empty() ? "" : ", ", ToString(part, mesh));
  return text;
}

std::string Text(const MeshSharding& s, const std::vector<SourceNote>& metadata) {
  if (s.mesh.axes.empty() && s.mesh.device_ids.size() == 1)
    return Str("{maximal_mesh[device_id=", s.mesh.device_ids[0], "]}");
  const bool scalar = s.dims.empty(),
             plain = s.replicated.empty() && s.unreduced.empty() && s.manual.empty();
  std::string text = Str("{", ToString(s.mesh), !scalar ? ", [" : plain ? ", replicated" : "");
  for (std::size_t d = 0; d < s.dims.size(); ++d) {
    const std::string axes = Text(s.dims[d].axes, s.mesh);
    const bool open = !s.dims[d].closed;
    text +=
        Str(d == 0 ? "{" : ", {", axes, open && !axes.empty() ? ", " : "", open ? "?" : "", "}");
  }
  if (!scalar) text += ']';
  const auto list = [&](std::string_view name, const std::vector<AxisPart>& parts) {
    if (!parts.empty()) text += Str(", ", name, "{", Text(parts, s.mesh), "}");
  };
  list("replicated=", s.replicated);
  list(Str("unreduced=", s.unreduced_kind), s.unreduced);
  list("manual=", s.manual);
  if (!metadata.empty()) text += Str(", metadata=", Text(metadata, true));
  return text + "}";
}

// {'a', 'b', ?}; without the question mark the list is closed.
bool ParseParts(Cursor& in, const Mesh& mesh, std::vector<AxisPart>* parts, bool* closed) {
  *closed = true;
  if (!in.Expect('{')) return false;
  while (!in.Try('}')) {
    if (in.Try('?')) {
      *closed = false;
    } else if (!Parse(in, mesh, &parts->emplace_back())) {
      return false;
    }
    if (!in.Try(',') && in.Peek() != '}') return in.Expect('}');
  }
  return true;
}

bool ParseDims(Cursor& in, MeshSharding* s) {
  while (!in.Try(']')) {
    MeshSharding::Dim& dim = s->dims.emplace_back();
    if (!ParseParts(in, s->mesh, &dim.axes, &dim.closed)) return false;
    if (!in.Try(',') && in.Peek() != ']') return in.Expect(']');
  }
  return true;
}

// What follows the mesh, one part behind each comma.
bool ParseMember(Cursor& in, MeshSharding* s, std::vector<SourceNote>* metadata) {
  if (in.Try('[')) return ParseDims(in, s);
  const char* const start = (in.Peek(), in.position());
  const std::string_view name = in.TryIdentifier();
  if (name == "replicated" && in.Peek() != '=') return true;
  bool closed = true;
  for (const auto& [known, parts] : {std::pair("replicated", &s->replicated),
                                     {"unreduced", &s->unreduced},
                                     {"manual", &s->manual}}) {
    if (name != known) continue;
    if (!in.Expect('=')) return false;
    if (parts == &s->unreduced) s->unreduced_kind = in.TryIdentifier();
    return ParseParts(in, s->mesh, parts, &closed);
  }
  if (name == "metadata") return in.Expect('=') && Parse(in, metadata);
  return in.FailAt(start, "a sharding by a mesh has no '", name, "'");
}

bool ParseMeshSharding(Cursor& in, Sharding* sharding) {
  MeshSharding& s = sharding->mesh.emplace();
  if (in.Try("maximal_mesh[device_id="))
    return in.Integer(&s.mesh.device_ids.emplace_back()) && in.Expect("]") && in.Expect('}');
  if (!Parse(in, &s.mesh)) return false;
  while (in.Try(',')) {
    if (!ParseMember(in, &s, &sharding->metadata)) return false;
  }
  return in.Expect('}');
}

// --- the others

// What may stand behind every kind.
std::string Suffix(const Sharding& s) {
  std::string text;
  if (s.group) text += Str(s.group->like ? " shard_like " : " shard_as ", s.group->id);
  if (!s.metadata.empty()) text += Str(" metadata=", Text(s.metadata, s.metadata.size() > 1));
  return text + "}";
}

bool ParseSuffix(Cursor& in, Sharding* s) {
  const bool like = in.Try("shard_like");
  if (like || in.Try("shard_as")) {
    s->group = {like, 0};
    if (!in.Integer(&s->group->id)) return false;
  }
  if (in.Try("metadata=") && !Parse(in, &s->metadata)) return false;
  return in.Expect('}');
}

std::string Tiles(const Sharding& s) {
  std::string text = Str("{devices=[", Join(s.tiles, ","), "]");
  text += s.iota.dims.empty() ? Join(s.devices, ",") : Str("<=", ToString(s.iota));
  if (s.replicates_last) text += " last_tile_dim_replicate";
  if (s.last_types.empty()) return text;
  text += " last_tile_dims={";
  for (std::size_t i = 0; i < s.last_types.size(); ++i)
    text += Str(i == 0 ? "" : ", ", Word(s.last_types[i]));
  return text + "}";
}

// Behind "devices=": [2,1]0,1 or [2,1]<=[2], and what may follow.
bool ParseTiles(Cursor& in, Sharding* s) {
  s->type = Type::kTiled;
  if (!ParseNumbers(in, '[', ']', &s->tiles)) return false;
  if (!(in.Try("<=") ? Parse(in, &s->iota) : ParseNumbers(in, &s->devices))) return false;
  s->replicates_last = in.Try("last_tile_dim_replicate");
  if (!in.Try("last_tile_dims={")) return true;
  while (!in.Try('}')) {
    if (!ParseWord(in, &s->last_types.emplace_back())) return false;
    if (!in.Try(',') && in.Peek() != '}') return in.Expect('}');
  }
  return true;
}

// A sharding; the elements of a tuple are not tuples.
bool ParseSharding(Cursor& in, Sharding* s, bool of_tuple) {
  if (!in.Expect('{')) return false;
  if (in.Peek() == '{' || in.Peek() == '}') {
    if (of_tuple) return in.Fail("a tuple of shardings lies in another");
    s->type = Type::kTuple;
    while (!in.Try('}')) {
      if (!ParseSharding(in, &s->tuple.emplace_back(), true)) return false;
      if (!in.Try(',') && in.Peek() != '}') return in.Expect('}');
    }
    return true;
  }
  const char* const start = in.position();
  if (in.Try("mesh[") || in.Try("maximal_mesh[")) {
    in.set_position(start);
    return ParseMeshSharding(in, s);
  }
  if (in.Try("devices=")) return ParseTiles(in, s) && ParseSuffix(in, s);
  if (!ParseWord(in, &s->type)) return false;
  if (s->type == Type::kMaximal &&
      !(in.Expect("device=") && in.Integer(&s->devices.emplace_back())))
    return false;
  return ParseSuffix(in, s);
}

}  // namespace

std::string ToString(const Sharding& s) {
  if (s.mesh) return Text(*s.mesh, s.metadata);
  switch (s.type) {
    case Type::kTuple: {
      std::string text;
      for (const Sharding& element : s.tuple)
        text += Str(text.empty() ? "" : ", ", ToString(element));
      return Str("{", text, "}");
    }
    case Type::kTiled:
      return Str(Tiles(s), Suffix(s));
    case Type::kMaximal:
      return Str("{maximal device=", Join(s.devices, ","), Suffix(s));
    default:
      return Str("{", Word(s.type), Suffix(s));
  }
}

bool Parse(Cursor& in, Sharding* sharding) { return ParseSharding(in, sharding, false); }

}  // namespace lazuli::hlo
