// Attributes that modules keep as text, as fields of HloInstructionProto.

#include <algorithm>
#include <charconv>

#include "ir/hlo/proto/proto_internal.h"
#include "ir/hlo/text/attr_text.h"
#include "ir/hlo/text/parser_internal.h"

namespace lazuli::hlo::internal {
namespace {

// How the field holds what the text says.
enum class Form : uint8_t {
  kInt,         // 1
  kFlag,        // true
  kString,      // "text"
  kJson,        // {...} as it is, anything else as "text"
  kFlags,       // {true,false}: ParameterReplication
  kGroups,      // {{0,1},{2}}: repeated ReplicaGroup
  kDevices,     // the same, or [2,1]<=[2]: CollectiveDeviceListProto
  kIota,        // [2,1]<=[2]: IotaReplicaGroupListProto
  kPairs,       // {{0,1}}: repeated SourceTarget
  kFrontend,    // {a="b"}: FrontendAttributes
  kSharding,    // {replicated}: OpSharding
  kOrigin,      // {{"x"}}: OriginalValueProto
  kStatistics,  // {visualizing_index=0,a=1.5}: StatisticsViz
  kAccuracy,    // {mode=highest}, {tolerance={atol=0.1}}: ResultAccuracy
  kShapeText,   // f32[2]{0}
  kSchedule,    // SCHEDULE_LATEST
};

struct TextRow {
  std::string_view name;
  Tag tag;
  Form form;
};
// In the order in which they are printed. Of several fields for one name the first is written.
constexpr TextRow kRows[] = {
    {"channel_id", 26, Form::kInt},
    {"replica_groups", 87, Form::kDevices},
    {"replica_groups", 49, Form::kGroups},
    {"replica_groups", 92, Form::kIota},
    {"constrain_layout", 56, Form::kFlag},
    {"use_global_device_ids", 71, Form::kFlag},
    {"source_target_pairs", 52, Form::kPairs},
    {"is_host_transfer", 47, Form::kFlag},
    {"infeed_config", 27, Form::kString},
    {"outfeed_shape", 29, Form::kShapeText},
    {"outfeed_config", 22, Form::kString},
    {"async_execution_thread", 79, Form::kString},
    {"is_composite", 89, Form::kFlag},
    {"schedule", 76, Form::kSchedule},
    {"result_accuracy", 91, Form::kAccuracy},
    {"parameter_replication", 61, Form::kFlags},
    {"sharding", 40, Form::kSharding},
    {"frontend_attributes", 68, Form::kFrontend},
    {"statistics", 82, Form::kStatistics},
    {"origin", 88, Form::kOrigin},
    {"backend_config", 43, Form::kJson},
};

constexpr std::string_view kSchedules[] = {"", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST"};

bool IsDict(std::string_view text) {
  if (!text.starts_with('{')) return false;
  Cursor in(text);
  std::string_view all;
  return in.Balanced(&all) && all.size() == text.size();
}

std::string Quoted(const std::string& text) {
  std::string quoted;
  AppendQuoted(quoted, text);
  return quoted;
}
std::string DictOrQuoted(const std::string& text) { return IsDict(text) ? text : Quoted(text); }

std::string DictOrUnquoted(std::string_view text) {
  std::string value;
  Cursor in(text);
  if (IsDict(text) || !in.String(&value)) return std::string(text);
  return value;
}

// --- reading

std::string ReadGroup(protozero::pbf_reader in, ProtoError& error) {
  Dims ids;
  FieldReader::ReadAll(in, error, [&](FieldReader& v) { v.Ints(1, ids); });
  return Str("{", Join(ids, ","), "}");
}

std::string ReadIota(protozero::pbf_reader in, ProtoError& error) {
  int64_t groups = 0, devices = 0;
  Dims dims, order;
  FieldReader::ReadAll(in, error, [&](FieldReader& v) {
    v.Int(1, groups);
    v.Int(2, devices);
    v.Ints(3, dims);
    v.Ints(4, order);
  });
  std::string text = Str("[", groups, ",", devices, "]<=[", Join(dims, ","), "]");
  if (!std::is_sorted(order.begin(), order.end())) text += Str("T(", Join(order, ","), ")");
  return text;
}

std::string ReadDevices(protozero::pbf_reader in, ProtoError& error) {
  std::string groups, iota;
  FieldReader::ReadAll(in, error, [&](FieldReader& v) {
    if (v.AtMessage(1))
      groups += Str(groups.empty() ? "" : ",", ReadGroup(v.in().get_message(), error));
    if (v.AtMessage(2)) iota = ReadIota(v.in().get_message(), error);
  });
  return !iota.empty() ? iota : Str("{", groups, "}");
}

std::string ReadFlags(protozero::pbf_reader in, ProtoError& error) {
  std::string text;
  FieldReader::ReadAll(in, error, [&](FieldReader& v) {
    v.ForEachInt(1, [&](int64_t flag) { text += Str(text.empty() ? "" : ",", flag != 0); });
  });
  return Str("{", text, "}");
}

std::string ReadPair(protozero::pbf_reader in, ProtoError& error) {
  int64_t source = 0, target = 0;
  FieldReader::ReadAll(in, error, [&](FieldReader& v) {
    v.Int(1, source);
    v.Int(2, target);
  });
  return Str("{", source, ",", target, "}");
}

std::string ReadAccuracy(protozero::pbf_reader in, ProtoError& error) {
  int64_t mode = 0, ulps = 0;
  double atol = 0, rtol = 0;
  bool tolerance = false;
  FieldReader::ReadAll(in, error, [&](FieldReader& v) {
    v.Int(1, mode);
    v.Message(2, [&](FieldReader& t) {
      tolerance = true;
      t.Double(1, atol);
      t.Double(2, rtol);
      t.Int(3, ulps);
    });
  });
  if (tolerance) return Str("{tolerance={atol=", atol, ", rtol=", rtol, ", ulps=", ulps, "}}");
  return mode == 1 ? "{mode=highest}" : "";
}

std::string ReadMessage(Form form, protozero::pbf_reader in, ProtoError& error) {
  switch (form) {
    case Form::kFlags:
      return ReadFlags(in, error);
    case Form::kGroups:
      return ReadGroup(in, error);
    case Form::kDevices:
      return ReadDevices(in, error);
    case Form::kIota:
      return ReadIota(in, error);
    case Form::kPairs:
      return ReadPair(in, error);
    case Form::kFrontend:
      return ReadFrontendAttributes(in, error);
    case Form::kSharding:
      return ReadSharding(in, error);
    case Form::kAccuracy:
      return ReadAccuracy(in, error);
    case Form::kOrigin:
      return ReadOrigin(in, error);
    case Form::kStatistics:
      return ReadStatistics(in, error);
    default: {
      Shape shape;
      ReadShape(in, error, &shape);
      return shape.ToString(true);
    }
  }
}

// The value as text; empty if the field says nothing.
std::string ReadValue(FieldReader& v, const TextRow& row) {
  int64_t number = 0;
  std::string text;
  switch (row.form) {
    case Form::kInt:
      v.Int(row.tag, number);
      return number > 0 ? Str(number) : "";
    case Form::kFlag:
      v.Int(row.tag, number);
      return number != 0 ? "true" : "";
    case Form::kSchedule:
      v.Int(row.tag, number);
      return number == 1 || number == 2 ? std::string(kSchedules[number]) : "";
    case Form::kString:
    case Form::kJson:
      if (!v.AtMessage(row.tag)) return text;
      text = v.in().get_string();
      if (row.form == Form::kString) return Quoted(text);
      return text.empty() ? text : DictOrQuoted(text);
    default:
      return v.AtMessage(row.tag) ? ReadMessage(row.form, v.in().get_message(), v.error()) : "";
  }
}

// --- writing

Dims ReadBraces(Cursor& in) {
  Dims values;
  ParseDims(in, &values);
  return values;
}

// {{0,1},{2}} -> f(list) for each
template <class F>
void ForEachList(std::string_view text, F&& f) {
  Cursor in(text);
  if (!in.Expect('{')) return;
  while (!in.failed() && !in.Try('}')) {
    f(ReadBraces(in));
    in.Try(',');
  }
}

// [2,4]<=[4,2]T(1,0); false if the text is of another form.
bool WriteIota(FieldWriter& v, std::string_view text) {
  Cursor in(text);
  int64_t groups = 0, devices = 0;
  if (!in.Try('[') || !in.Integer(&groups) || !in.Expect(',') || !in.Integer(&devices) ||
      !in.Expect("]<=["))
    return false;
  Dims dims, order;
  auto list = [&in](Dims* values, char close) {
    do {
      if (!in.Integer(&values->emplace_back())) return false;
    } while (in.Try(','));
    return in.Expect(close);
  };
  if (!list(&dims, ']') || (in.Try("T(") && !list(&order, ')'))) return false;
  if (order.empty()) {
    for (std::size_t d = 0; d < dims.size(); ++d) order.push_back(static_cast<int64_t>(d));
  }
  v.Int(1, groups);
  v.Int(2, devices);
  v.Ints(3, dims);
  v.Ints(4, order);
  return true;
}

void WriteDevices(FieldWriter& v, std::string_view text) {
  if (text.starts_with('[')) return v.Message(2, [&](FieldWriter& iota) { WriteIota(iota, text); });
  ForEachList(text, [&](const Dims& ids) {
    v.Message(1, [&](FieldWriter& group) { group.Ints(1, ids); });
  });
}

void WriteFlags(FieldWriter& v, std::string_view text) {
  Cursor in(text);
  Dims flags;
  in.Expect('{');
  while (!in.failed() && !in.Try('}')) {
    bool flag = false;
    if (!in.Boolean(&flag)) return;
    flags.push_back(flag);
    in.Try(',');
  }
  v.Ints(1, flags);
}

// {mode=highest} or {tolerance={atol=0.1, rtol=0.1, ulps=2}}
void WriteAccuracy(FieldWriter& v, std::string_view text) {
  constexpr std::string_view kTolerance = "{tolerance={";
  if (!text.starts_with(kTolerance))
    return v.Int(1, text.find("highest") != std::string_view::npos);
  const std::string_view members = text.substr(kTolerance.size());
  v.Message(2, [&](FieldWriter& t) {
    for (const auto& [name, value] : SplitTextAttrs(members)) {
      double number = 0;
      std::from_chars(value.data(), value.data() + value.size(), number);
      if (name == "atol") t.Double(1, number);
      if (name == "rtol") t.Double(2, number);
      if (name == "ulps") t.Int(3, static_cast<int64_t>(number));
    }
  });
}

void WriteValue(FieldWriter& v, const TextRow& row, std::string_view text) {
  Cursor in(text);
  int64_t number = 0;
  std::string value;
  Shape shape;
  switch (row.form) {
    case Form::kInt:
      if (in.Integer(&number)) v.Int(row.tag, number);
      return;
    case Form::kFlag:
      return v.Bool(row.tag, text == "true");
    case Form::kSchedule:
      return v.Int(row.tag, std::find(std::begin(kSchedules), std::end(kSchedules), text) -
                                std::begin(kSchedules));
    case Form::kString:
      if (in.String(&value)) v.out().add_bytes(row.tag, value);
      return;
    case Form::kJson:
      return v.Text(row.tag, DictOrUnquoted(text));
    case Form::kPairs:
      return ForEachList(text, [&](const Dims& pair) {
        if (pair.size() != 2) return;
        v.Message(row.tag, [&](FieldWriter& w) {
          w.Int(1, pair[0]);
          w.Int(2, pair[1]);
        });
      });
    case Form::kShapeText:
      if (ParseShape(in, &shape))
        v.Message(row.tag, [&](FieldWriter& w) { WriteShape(w.out(), shape); });
      return;
    default:
      break;
  }
  if (text == "{}") return v.out().add_message(row.tag, std::string());
  v.Message(row.tag, [&](FieldWriter& w) {
    if (row.form == Form::kFlags) WriteFlags(w, text);
    if (row.form == Form::kDevices) WriteDevices(w, text);
    if (row.form == Form::kFrontend) WriteFrontendAttributes(w.out(), text);
    if (row.form == Form::kSharding) WriteSharding(w.out(), text);
    if (row.form == Form::kAccuracy) WriteAccuracy(w, text);
    if (row.form == Form::kOrigin) WriteOrigin(w, text);
    if (row.form == Form::kStatistics) WriteStatistics(w, text);
  });
}

// domain={kind="sharding", entry={...}, exit={...}}: a field for each of the two shardings.
constexpr Tag kDomainEntry = 54, kDomainExit = 55;

void ReadDomain(FieldReader& field, TextAttrs* attrs) {
  for (const auto& [tag, name] : {std::pair{kDomainEntry, "entry"}, {kDomainExit, "exit"}}) {
    if (!field.AtMessage(tag)) continue;
    const std::string sharding = ReadSharding(field.in().get_message(), field.error());
    auto domain = std::find_if(attrs->begin(), attrs->end(),
                               [](const auto& attr) { return attr.first == "domain"; });
    if (domain == attrs->end())
      domain = attrs->insert(attrs->end(), {"domain", "{kind=\"sharding\"}"});
    domain->second.pop_back();
    domain->second += Str(", ", name, "=", sharding, "}");
  }
}

void WriteDomain(FieldWriter& v, std::string_view text) {
  if (text.size() < 2) return;
  for (const auto& [name, value] : SplitTextAttrs(text.substr(1, text.size() - 2))) {
    const std::string& sharding = value;
    if (name == "kind") continue;
    v.Message(name == "entry" ? kDomainEntry : kDomainExit,
              [&](FieldWriter& w) { WriteSharding(w.out(), sharding); });
  }
}

}  // namespace

void ReadTextAttr(FieldReader& field, TextAttrs* attrs) {
  ReadDomain(field, attrs);
  for (const TextRow& row : kRows) {
    const std::string value = ReadValue(field, row);
    if (!field.taken()) continue;
    const bool repeated = row.form == Form::kGroups || row.form == Form::kPairs;
    const bool said = row.form == Form::kDevices || row.form == Form::kJson || repeated;
    if (value.empty() || (value == "{}" && !said)) return;
    auto same = std::find_if(attrs->begin(), attrs->end(),
                             [&](const auto& attr) { return attr.first == row.name; });
    if (same == attrs->end()) {
      attrs->emplace_back(row.name, repeated ? Str("{", value, "}") : value);
    } else if (repeated) {
      same->second.back() = ',';
      same->second += Str(value, "}");
    }
    return;
  }
}

void WriteTextAttr(protozero::pbf_writer& out, std::string_view name, std::string_view value) {
  FieldWriter v(out);
  if (name == "domain") return WriteDomain(v, value);
  for (const TextRow& row : kRows) {
    if (row.name == name) return WriteValue(v, row, value);
  }
}

TextAttrs SplitTextAttrs(std::string_view text) {
  TextAttrs attrs;
  Cursor in(text);
  while (!in.AtEnd()) {
    const std::string_view name = in.TryIdentifier();
    std::string_view value;
    if (name.empty() || !in.Expect('=') || !in.RawValue(&value)) break;
    attrs.emplace_back(name, value);
    in.Try(',');
  }
  return attrs;
}

void SortTextAttrs(TextAttrs* attrs) {
  const auto rank = [](const auto& attr) {
    return std::find_if(std::begin(kRows), std::end(kRows),
                        [&](const TextRow& row) { return row.name == attr.first; }) -
           std::begin(kRows);
  };
  std::stable_sort(attrs->begin(), attrs->end(),
                   [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
}

std::string ReadFrontendAttributes(protozero::pbf_reader in, ProtoError& error) {
  TextAttrs entries;
  FieldReader::ReadAll(in, error, [&](FieldReader& v) {
    v.Messages(1, entries, [](FieldReader& entry, auto& pair) {
      entry.Text(1, pair.first);
      entry.Text(2, pair.second);
    });
  });
  std::sort(entries.begin(), entries.end());
  std::string text;
  for (const auto& [key, value] : entries)
    text += Str(text.empty() ? "" : ",", key, "=", DictOrQuoted(value));
  return Str("{", text, "}");
}

void WriteFrontendAttributes(protozero::pbf_writer& out, std::string_view text) {
  if (text.size() < 2) return;
  FieldWriter(out).Messages(1, SplitTextAttrs(text.substr(1, text.size() - 2)),
                            [](FieldWriter& entry, const auto& pair) {
                              entry.Text(1, pair.first);
                              entry.Text(2, DictOrUnquoted(pair.second));
                            });
}

}  // namespace lazuli::hlo::internal
