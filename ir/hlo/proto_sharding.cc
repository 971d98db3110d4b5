// Message OpSharding as text and back: Lazuli keeps shardings for others and reads nothing from
// them.

#include <algorithm>

#include "ir/hlo/parser_internal.h"
#include "ir/hlo/proto_internal.h"

namespace lazuli::hlo::internal {
namespace {

enum Type : int64_t { kReplicated, kMaximal, kTuple, kOther, kManual, kUnknown, kUnreduced };
constexpr std::string_view kTypes[] = {"replicated", "maximal", "",         "",
                                       "manual",     "unknown", "unreduced"};

struct Sharding {
  int64_t type = kReplicated;
  Dims dims, devices, iota_dims, iota_order, last_dims;
  bool replicate_last = false;
  std::vector<std::string> tuple;
};

std::string_view Word(int64_t type) {
  return kTypes[std::clamp<int64_t>(type, kReplicated, kUnreduced)];
}

std::string Text(const Sharding& s) {
  if (s.type == kTuple) return Str("{", Join(s.tuple, ", "), "}");
  if (s.type == kMaximal) return Str("{maximal device=", Join(s.devices, ","), "}");
  if (s.type != kOther) return Str("{", Word(s.type), "}");
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
  return Str(text, "}");
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
  if (!in.Try("last_tile_dims={")) return in.Expect('}');
  while (!in.failed() && !in.Try('}')) {
    const auto* at = std::find(std::begin(kTypes), std::end(kTypes), in.Word());
    if (at == std::end(kTypes)) return false;
    s->last_dims.push_back(at - std::begin(kTypes));
    in.Try(',');
  }
  return in.Expect('}');
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
  const auto* at = std::find(std::begin(kTypes), std::end(kTypes), in.TryIdentifier());
  if (at == std::end(kTypes)) return false;
  s->type = at - std::begin(kTypes);
  if (s->type == kMaximal && (!in.Try("device=") || !ReadList(in, &s->devices))) return false;
  return in.Expect('}');
}

}  // namespace

std::string ReadSharding(protozero::pbf_reader in, ProtoError& error, int depth) {
  Sharding s;
  bool named = false;
  FieldReader::ReadAll(in, error, [&](FieldReader& v) {
    v.Int(1, s.type);
    v.Ints(3, s.dims);
    v.Ints(4, s.devices);
    if (v.AtMessage(5)) {
      if (depth > 0) return error.Note("a tuple of shardings in another");
      s.tuple.push_back(ReadSharding(v.in().get_message(), error, depth + 1));
    }
    v.Bool(6, s.replicate_last);
    v.Ints(8, s.last_dims);
    v.Ints(9, s.iota_dims);
    v.Ints(10, s.iota_order);
    named = named || v.AtMessage(14);
    if (v.taken() && named) v.in().skip();
  });
  return named ? "" : Text(s);
}

void WriteSharding(protozero::pbf_writer& out, std::string_view text, int depth) {
  Sharding s;
  if (!Parse(text, &s) || (s.type == kTuple && depth > 0)) return;
  FieldWriter v(out);
  v.Int(1, s.type);
  v.Ints(3, s.dims);
  v.Ints(4, s.devices);
  v.Messages(5, s.tuple, [depth](FieldWriter& w, const std::string& element) {
    WriteSharding(w.out(), element, depth + 1);
  });
  v.Bool(6, s.replicate_last);
  v.Ints(8, s.last_dims);
  v.Ints(9, s.iota_dims);
  v.Ints(10, s.iota_order);
}

}  // namespace lazuli::hlo::internal
