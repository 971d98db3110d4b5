// Message OpSharding as text and back: Lazuli keeps shardings for others and reads nothing from
// them.

#include <algorithm>

#include "ir/hlo/proto/proto_internal.h"
#include "ir/hlo/text/attr_text.h"
#include "ir/hlo/text/parser_internal.h"

namespace lazuli::hlo::internal {
namespace {

enum Type : int64_t { kReplicated, kMaximal, kTuple, kOther, kManual, kUnknown, kUnreduced };
constexpr std::string_view kShardingTypes[] = {"replicated", "maximal", "",         "",
                                               "manual",     "unknown", "unreduced"};

struct Sharding {
  int64_t type = kReplicated;
  Dims dims, devices, iota_dims, iota_order, last_dims;
  bool replicate_last = false;
  bool has_group = false, like_group = false;  // shard_as or shard_like others of this group
  int64_t group = 0;
  std::vector<SourceNote> metadata;
  std::vector<std::string> tuple;
};

std::string_view Word(int64_t type) {
  return kShardingTypes[std::clamp<int64_t>(type, kReplicated, kUnreduced)];
}

// What may stand behind every kind.
std::string Suffix(const Sharding& s) {
  std::string text;
  if (s.has_group) text += Str(s.like_group ? " shard_like " : " shard_as ", s.group);
  if (s.metadata.empty()) return text;
  const std::string notes = NotesText(s.metadata);
  return Str(text, " metadata=", s.metadata.size() == 1 ? notes : Str("{", notes, "}"));
}

bool ParseSuffix(Cursor& in, Sharding* s) {
  s->like_group = in.Try("shard_like");
  s->has_group = s->like_group || in.Try("shard_as");
  if (s->has_group && !in.Integer(&s->group)) return false;
  std::string_view notes;
  if (in.Try("metadata=")) {
    if (!in.Balanced(&notes)) return false;
    s->metadata = ParseNotes(notes);
  }
  return in.Expect('}');
}

std::string Text(const Sharding& s) {
  if (s.type == kTuple) return Str("{", Join(s.tuple, ", "), "}");
  if (s.type == kMaximal) return Str("{maximal device=", Join(s.devices, ","), Suffix(s), "}");
  if (s.type != kOther) return Str("{", Word(s.type), Suffix(s), "}");
  std::string text = Str("{devices=[", Join(s.dims, ","), "]");
  if (s.iota_dims.empty()) {
    text += Join(s.devices, ",");
  } else {
    text += Str("<=[", Join(s.iota_dims, ","), "]");
    if (!std::is_sorted(s.iota_order.begin(), s.iota_order.end()))
      text += Str("T(", Join(s.iota_order, ","), ")");
  }
  if (s.replicate_last) text += " last_tile_dim_replicate";
  if (!s.last_dims.empty()) {
    text += " last_tile_dims={";
    for (std::size_t i = 0; i < s.last_dims.size(); ++i)
      text += Str(i == 0 ? "" : ", ", Word(s.last_dims[i]));
    text += "}";
  }
  return Str(text, Suffix(s), "}");
}

// Numbers up to something else.
bool ReadList(Cursor& in, Dims* values) {
  do {
    if (!in.Integer(&values->emplace_back())) return false;
  } while (in.Try(','));
  return true;
}

// Behind "devices=": [2,1]0,1 or [2,1]<=[2]T(0), and what may follow.
bool ReadDevices(Cursor& in, Sharding* s) {
  s->type = kOther;
  if (!in.Expect('[') || !ReadList(in, &s->dims) || !in.Expect(']')) return false;
  if (!in.Try("<=[")) {
    if (!ReadList(in, &s->devices)) return false;
  } else {
    if (!ReadList(in, &s->iota_dims) || !in.Expect(']')) return false;
    if (in.Try("T(") && (!ReadList(in, &s->iota_order) || !in.Expect(')'))) return false;
    if (s->iota_order.empty()) {
      for (std::size_t d = 0; d < s->iota_dims.size(); ++d)
        s->iota_order.push_back(static_cast<int64_t>(d));
    }
  }
  s->replicate_last = in.Try("last_tile_dim_replicate");
  if (!in.Try("last_tile_dims={")) return ParseSuffix(in, s);
  while (!in.failed() && !in.Try('}')) {
    const auto* at = std::find(std::begin(kShardingTypes), std::end(kShardingTypes), in.Word());
    if (at == std::end(kShardingTypes)) return false;
    s->last_dims.push_back(at - std::begin(kShardingTypes));
    in.Try(',');
  }
  return ParseSuffix(in, s);
}

bool Parse(std::string_view text, Sharding* s) {
  Cursor in(text);
  if (!in.Expect('{')) return false;
  if (in.Peek() == '{' || in.Peek() == '}') {
    s->type = kTuple;
    while (!in.failed() && !in.Try('}')) {
      std::string_view element;
      if (!in.Balanced(&element)) return false;
      s->tuple.push_back(Str(element));
      in.Try(',');
    }
    return !in.failed();
  }
  if (in.Try("devices=")) return ReadDevices(in, s);
  const auto* at =
      std::find(std::begin(kShardingTypes), std::end(kShardingTypes), in.TryIdentifier());
  if (at == std::end(kShardingTypes)) return false;
  s->type = at - std::begin(kShardingTypes);
  if (s->type == kMaximal && (!in.Try("device=") || !ReadList(in, &s->devices))) return false;
  return ParseSuffix(in, s);
}

}  // namespace

std::string ReadSharding(protozero::pbf_reader in, ProtoError& error, int depth) {
  Sharding s;
  std::string mesh;
  FieldReader::ReadAll(in, error, [&](FieldReader& v) {
    v.Int(1, s.type);
    v.Ints(3, s.dims);
    v.Ints(4, s.devices);
    if (v.AtMessage(5)) {
      if (depth > 0) return error.Note("a tuple of shardings in another");
      s.tuple.push_back(ReadSharding(v.in().get_message(), error, depth + 1));
    }
    v.Bool(6, s.replicate_last);
    v.Messages(7, s.metadata, [](FieldReader& w, SourceNote& note) { NoteRows(w, note); });
    v.Ints(8, s.last_dims);
    v.Ints(9, s.iota_dims);
    v.Ints(10, s.iota_order);
    v.Bool(11, s.has_group);
    v.Int(12, s.group);
    v.Bool(13, s.like_group);
    if (v.AtMessage(14)) mesh = ReadMeshSharding(v.in().get_message(), error);
  });
  return mesh.empty() ? Text(s) : mesh;
}

void WriteSharding(protozero::pbf_writer& out, std::string_view text, int depth) {
  FieldWriter v(out);
  if (IsMeshSharding(text))
    return v.Message(14, [text](FieldWriter& w) { WriteMeshSharding(w, text); });
  Sharding s;
  if (!Parse(text, &s) || (s.type == kTuple && depth > 0)) return;
  v.Int(1, s.type);
  v.Ints(3, s.dims);
  v.Ints(4, s.devices);
  v.Messages(5, s.tuple, [depth](FieldWriter& w, const std::string& element) {
    WriteSharding(w.out(), element, depth + 1);
  });
  v.Bool(6, s.replicate_last);
  v.Messages(7, s.metadata, [](FieldWriter& w, const SourceNote& note) { NoteRows(w, note); });
  v.Ints(8, s.last_dims);
  v.Ints(9, s.iota_dims);
  v.Ints(10, s.iota_order);
  v.Bool(11, s.has_group);
  if (s.has_group) v.Int(12, s.group);
  v.Bool(13, s.like_group);
}

namespace {

template <class V>
void EveryNoteRow(V& v, typename V::template Ref<SourceNote> note) {
  v.Text(1, note.op_type);
  v.Text(2, note.op_name);
  v.Text(3, note.source_file);
}

}  // namespace

void NoteRows(FieldReader& v, SourceNote& note) {
  EveryNoteRow(v, note);
  v.Int(4, note.source_line);
}
void NoteRows(FieldWriter& v, const SourceNote& note) {
  EveryNoteRow(v, note);
  if (note.source_line != 0) v.Int(4, note.source_line);
}

std::string NotesText(const std::vector<SourceNote>& notes) {
  std::string text;
  for (const SourceNote& note : notes) {
    text += text.empty() ? "{" : ", {";
    const std::size_t first = text.size();
    const auto member = [&](std::string_view name, const std::string& value) {
      if (value.empty()) return;
      text += Str(text.size() > first ? " " : "", name, "=");
      AppendQuoted(text, value);
    };
    member("op_type", note.op_type);
    member("op_name", note.op_name);
    member("source_file", note.source_file);
    if (note.source_line != 0)
      text += Str(text.size() > first ? " " : "", "source_line=", note.source_line);
    text += '}';
  }
  return text;
}

std::vector<SourceNote> ParseNotes(std::string_view text) {
  std::vector<SourceNote> notes;
  Cursor in(text);
  in.Expect('{');
  const bool list = in.Peek() == '{';
  do {
    std::string_view members = text;
    if (list && !in.Balanced(&members)) break;
    SourceNote& note = notes.emplace_back();
    for (const auto& [name, value] : SplitTextAttrs(members.substr(1, members.size() - 2))) {
      Cursor one(value);
      if (name == "op_type") one.String(&note.op_type);
      if (name == "op_name") one.String(&note.op_name);
      if (name == "source_file") one.String(&note.source_file);
      if (name == "source_line") one.Integer(&note.source_line);
    }
  } while (list && (in.Try(',') || in.Peek() == '{'));
  return notes;
}

}  // namespace lazuli::hlo::internal
