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
  kFlag,        // true
  kString,      // "text"
  kJson,        // {...} as it is, anything else as "text"
  kFlags,       // {true,false}: ParameterReplication
  kFrontend,    // {a="b"}: FrontendAttributes
  kOrigin,      // {{"x"}}: OriginalValueProto
  kStatistics,  // {visualizing_index=0,a=1.5}: StatisticsViz
  kAccuracy,    // {mode=highest}, {tolerance={atol=0.1}}: ResultAccuracy
  kSchedule,    // SCHEDULE_LATEST
};

struct TextRow {
  std::string_view name;
  Tag tag;
  Form form;
};
// In the order in which they are printed.
constexpr TextRow kRows[] = {
    {"async_execution_thread", 79, Form::kString},
    {"is_composite", 89, Form::kFlag},
    {"schedule", 76, Form::kSchedule},
    {"result_accuracy", 91, Form::kAccuracy},
    {"parameter_replication", 61, Form::kFlags},
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

std::string ReadFlags(protozero::pbf_reader in, ProtoError& error) {
  std::string text;
  FieldReader::ReadAll(in, error, [&](FieldReader& v) {
    v.ForEachInt(1, [&](int64_t flag) { text += Str(text.empty() ? "" : ",", flag != 0); });
  });
  return Str("{", text, "}");
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
    case Form::kFrontend:
      return ReadFrontendAttributes(in, error);
    case Form::kAccuracy:
      return ReadAccuracy(in, error);
    case Form::kOrigin:
      return ReadOrigin(in, error);
    default:
      return ReadStatistics(in, error);
  }
}

// The value as text; empty if the field says nothing.
std::string ReadValue(FieldReader& v, const TextRow& row) {
  int64_t number = 0;
  std::string text;
  switch (row.form) {
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
  std::string value;
  switch (row.form) {
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
    default:
      break;
  }
  if (text == "{}") return v.out().add_message(row.tag, std::string());
  v.Message(row.tag, [&](FieldWriter& w) {
    if (row.form == Form::kFlags) WriteFlags(w, text);
    if (row.form == Form::kFrontend) WriteFrontendAttributes(w.out(), text);
    if (row.form == Form::kAccuracy) WriteAccuracy(w, text);
    if (row.form == Form::kOrigin) WriteOrigin(w, text);
    if (row.form == Form::kStatistics) WriteStatistics(w, text);
  });
}

}  // namespace

void ReadTextAttr(FieldReader& field, TextAttrs* attrs) {
  for (const TextRow& row : kRows) {
    const std::string value = ReadValue(field, row);
    if (!field.taken()) continue;
    if (value.empty() || (value == "{}" && row.form != Form::kJson)) return;
    attrs->emplace_back(row.name, value);
    return;
  }
}

void WriteTextAttr(protozero::pbf_writer& out, std::string_view name, std::string_view value) {
  FieldWriter v(out);
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
