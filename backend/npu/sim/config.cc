#include "backend/npu/sim/config.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "ir/support/check.h"
#include "ir/support/flags.h"
#include "ir/support/status.h"
#include "ir/support/str.h"

namespace lazuli::npu {
namespace {

struct Section {
  std::string_view name, doc;
};

// Keys and where a configuration holds them, at the same place of both lists.
struct ConfigTable {
  std::vector<ConfigKey> keys;
  std::vector<void* (*)(Config&)> members;
  std::vector<Section> sections{{"", "The machine as a whole."}};

  ConfigTable();
  std::optional<std::size_t> Find(std::string_view key) const {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (keys[i].key == key) return i;
    }
    return std::nullopt;
  }
};

std::string EnumText(std::string_view choices, std::size_t index) {
  for (; index > 0; --index) choices.remove_prefix(choices.find('|') + 1);
  return std::string(choices.substr(0, choices.find('|')));
}

// A row of config.def becomes an entry of both lists; `at` leads from a configuration to the
// section that is open.
ConfigTable::ConfigTable() {
  std::string_view section;
  const auto add = [&](std::string_view name, ConfigKey key, void* (*member)(Config&)) {
    key.key = section.empty() ? std::string(name) : Str(section, ".", name);
    keys.push_back(std::move(key));
    members.push_back(member);
  };
  const auto at = [](Config& c) -> auto& { return c; };
#define LAZULI_NPU_SECTION(name, doc)                                       \
  {                                                                         \
    const auto at = [](Config& c) -> auto& { return c.name; }; /* NOLINT */ \
    section = #name;                                                        \
    sections.push_back({#name, doc});
#define LAZULI_NPU_END(name) }
#define LAZULI_NPU_MEMBER(name) [](Config& c) -> void* { return &decltype(at){}(c).name; }
#define LAZULI_NPU_INT(scope, name, edge, server, min, max, unit, doc)                           \
  static_assert((min) <= (edge) && (edge) <= (max) && (min) <= (server) && (server) <= (max));   \
  add(#name,                                                                                     \
      {"", ConfigType::kInt, ConfigScope::k##scope, min, max, unit, "", doc, Str(int64_t{edge}), \
       Str(int64_t{server})},                                                                    \
      LAZULI_NPU_MEMBER(name));
#define LAZULI_NPU_REAL(scope, name, edge, server, min, max, unit, doc)                          \
  static_assert((min) <= (edge) && (edge) <= (max) && (min) <= (server) && (server) <= (max));   \
  add(#name,                                                                                     \
      {"", ConfigType::kReal, ConfigScope::k##scope, min, max, unit, "", doc, Str(double{edge}), \
       Str(double{server})},                                                                     \
      LAZULI_NPU_MEMBER(name));
#define LAZULI_NPU_BOOL(scope, name, edge, server, doc)                                      \
  add(#name,                                                                                 \
      {"", ConfigType::kBool, ConfigScope::k##scope, 0, 0, "", "false|true", doc, Str(edge), \
       Str(server)},                                                                         \
      LAZULI_NPU_MEMBER(name));
#define LAZULI_NPU_CHOICE(scope, type, name, edge, server, choices, doc)                          \
  add(#name,                                                                                      \
      {"", ConfigType::kChoice, ConfigScope::k##scope, 0, 0, "", choices, doc,                    \
       EnumText(choices, std::size_t(type::edge)), EnumText(choices, std::size_t(type::server))}, \
      LAZULI_NPU_MEMBER(name));
#define LAZULI_NPU_NAMES(scope, name, edge, server, doc)                                       \
  add(#name, {"", ConfigType::kNames, ConfigScope::k##scope, 0, 0, "", "", doc, edge, server}, \
      LAZULI_NPU_MEMBER(name));
#include "backend/npu/sim/config.def"
#undef LAZULI_NPU_SECTION
#undef LAZULI_NPU_END
#undef LAZULI_NPU_MEMBER
#undef LAZULI_NPU_INT
#undef LAZULI_NPU_REAL
#undef LAZULI_NPU_BOOL
#undef LAZULI_NPU_CHOICE
#undef LAZULI_NPU_NAMES
}

const ConfigTable& AllKeys() {
  static const auto* table = new ConfigTable;
  return *table;
}

bool IsPowerOfTwo(const ConfigKey& key) { return key.unit.starts_with("2^n "); }
std::string_view Unit(const ConfigKey& key) {
  return IsPowerOfTwo(key) ? key.unit.substr(4) : key.unit;
}

// 10000000000 as 10000000000, 0.001 as 0.001: never with an exponent.
std::string Plain(double value) {
  return value == std::floor(value) ? Str(static_cast<int64_t>(value)) : Str(value);
}

template <class T>
std::optional<T> ParseNumber(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<uint8_t> ParseChoice(std::string_view choices, std::string_view text) {
  for (uint8_t index = 0;; ++index) {
    const std::size_t bar = choices.find('|');
    if (choices.substr(0, bar) == text) return index;
    if (bar == std::string_view::npos) return std::nullopt;
    choices.remove_prefix(bar + 1);
  }
}

bool InRange(const ConfigKey& key, double value) { return key.min <= value && value <= key.max; }

// Writes the value if the text is one that the key may have.
bool SetMember(const ConfigKey& key, std::string_view text, void* member) {
  switch (key.type) {
    case ConfigType::kInt: {
      const auto value = ParseNumber<int64_t>(text);
      if (!value || !InRange(key, static_cast<double>(*value))) return false;
      if (IsPowerOfTwo(key) && !std::has_single_bit(static_cast<uint64_t>(*value))) return false;
      *static_cast<int64_t*>(member) = *value;
      return true;
    }
    case ConfigType::kReal: {
      const auto value = ParseNumber<double>(text);
      if (!value || !InRange(key, *value)) return false;  // a NaN is in no range
      *static_cast<double*>(member) = *value;
      return true;
    }
    case ConfigType::kBool: {
      const auto value = ParseChoice(key.choices, text);
      if (value) *static_cast<bool*>(member) = *value != 0;
      return value.has_value();
    }
    case ConfigType::kChoice: {
      const auto value = ParseChoice(key.choices, text);
      if (value) *static_cast<uint8_t*>(member) = *value;
      return value.has_value();
    }
    case ConfigType::kNames: {
      constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789-+";
      if (text.find_first_not_of(kLetters) != std::string_view::npos || text.starts_with('+') ||
          text.ends_with('+') || text.find("++") != std::string_view::npos)
        return false;
      *static_cast<std::string*>(member) = text;
      return true;
    }
  }
  return false;
}

std::string MemberText(const ConfigKey& key, const void* member) {
  switch (key.type) {
    case ConfigType::kInt:
      return Str(*static_cast<const int64_t*>(member));
    case ConfigType::kReal:
      return Plain(*static_cast<const double*>(member));
    case ConfigType::kBool:
      return Str(*static_cast<const bool*>(member));
    case ConfigType::kChoice:
      return EnumText(key.choices, *static_cast<const uint8_t*>(member));
    case ConfigType::kNames:
      return *static_cast<const std::string*>(member);
  }
  return "";
}

std::string MemberText(const Config& config, std::size_t index) {
  Config copy = config;
  return MemberText(AllKeys().keys[index], AllKeys().members[index](copy));
}

// Levenshtein's distance: for "did you mean".
std::size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

absl::Status NoKey(std::string_view name) {
  const ConfigKey* nearest = nullptr;
  std::size_t least = 3;
  for (const ConfigKey& key : AllKeys().keys) {
    const std::size_t distance = Distance(name, key.key);
    if (distance < least) {
      least = distance;
      nearest = &key;
    }
  }
  return InvalidArgument("there is no key ", name,
                         nearest != nullptr ? Str("; is it ", nearest->key, "?")
                                            : std::string("; --help-config lists them"));
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::string_view ScopeText(ConfigScope scope) {
  return scope == ConfigScope::kProgram  ? "program"
         : scope == ConfigScope::kTiming ? "timing"
                                         : "run";
}

std::string_view SectionOf(const ConfigKey& key) {
  const std::size_t dot = key.key.find('.');
  return dot == std::string::npos ? std::string_view() : std::string_view(key.key).substr(0, dot);
}

// "ws|os|is" as "ws, os or is".
std::string Alternatives(std::string_view choices) {
  std::string text;
  for (std::size_t bar; (bar = choices.find('|')) != std::string_view::npos;) {
    text += Str(choices.substr(0, bar));
    choices.remove_prefix(bar + 1);
    text += choices.find('|') == std::string_view::npos ? " or " : ", ";
  }
  return text + std::string(choices);
}

}  // namespace

std::string ConfigKey::Range() const {
  if (type == ConfigType::kBool || type == ConfigType::kChoice) return Alternatives(choices);
  if (type == ConfigType::kNames) return "names joined by +";
  return Str(Plain(min), " to ", Plain(max), " ", Unit(*this),
             IsPowerOfTwo(*this) ? " (powers of 2)" : "");
}

std::span<const ConfigKey> ConfigKeys() { return AllKeys().keys; }

absl::StatusOr<Config> Preset(std::string_view name) {
  Config config;
  if (name == config.name) return config;
  if (name != "npu1-server")
    return InvalidArgument("there is no preset ", name, "; there are npu1-edge and npu1-server");
  config.name = name;
  const ConfigTable& table = AllKeys();
  for (std::size_t i = 0; i < table.keys.size(); ++i)
    LAZULI_CHECK(SetMember(table.keys[i], table.keys[i].server, table.members[i](config)));
  return config;
}

absl::Status SetKeys(std::string_view overrides, Config& config) {
  while (!overrides.empty()) {
    const std::size_t comma = std::min(overrides.find(','), overrides.size());
    const std::string_view item = Trim(overrides.substr(0, comma));
    overrides.remove_prefix(std::min(comma + 1, overrides.size()));
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos)
      return InvalidArgument("'", item, "' is not of the form key=value");
    const std::string_view name = Trim(item.substr(0, equals));
    const std::string_view value = Trim(item.substr(equals + 1));
    const auto index = AllKeys().Find(name);
    if (!index) return NoKey(name);
    const ConfigKey& key = AllKeys().keys[*index];
    if (!SetMember(key, value, AllKeys().members[*index](config)))
      return InvalidArgument(name, "=", value, ": it is ", key.Range());
  }
  return absl::OkStatus();
}

absl::Status Check(const Config& config) {
  if (config.spm_bytes() % (config.spm.banks * config.spm.bank_bytes) != 0)
    return InvalidArgument("spm.kb=", config.spm.kb,
                           " is not a multiple of spm.banks=", config.spm.banks,
                           " words of spm.bank_bytes=", config.spm.bank_bytes);
  if (config.dram.row_bytes < config.dram.burst)
    return InvalidArgument("dram.burst=", config.dram.burst,
                           " is more than dram.row_bytes=", config.dram.row_bytes);
  if (config.devices > 1 && config.dram.mb > 4096)
    return InvalidArgument("dram.mb=", config.dram.mb, " with devices=", config.devices,
                           ": a device sees 4096 MiB of each of its peers");
  return absl::OkStatus();
}

std::string KeyText(const Config& config, std::string_view key) {
  const auto index = AllKeys().Find(key);
  LAZULI_CHECK(index.has_value());
  return MemberText(config, *index);
}

std::string ToToml(const Config& config) {
  std::string text = Str("name = \"", config.name, "\"\n");
  const ConfigTable& table = AllKeys();
  std::string_view section;
  for (std::size_t i = 0; i < table.keys.size(); ++i) {
    const ConfigKey& key = table.keys[i];
    if (SectionOf(key) != section) text += Str("\n[", section = SectionOf(key), "]\n");
    std::string value = MemberText(config, i);
    if (key.type == ConfigType::kChoice || key.type == ConfigType::kNames)
      value = Str("\"", value, "\"");
    text += Str(key.key.substr(section.empty() ? 0 : section.size() + 1), " = ", value, "\n");
  }
  return text;
}

absl::StatusOr<Config> ConfigFromEnvironment() {
  auto read = ReadConfig(flags().npu_config(), "");
  if (!read.ok()) return Prefixed(read.status(), "NPU_CONFIG: ");
  absl::Status status = SetKeys(flags().npu_set(), *read);
  if (status.ok()) status = Check(*read);
  if (!status.ok()) return Prefixed(status, "NPU_SET: ");
  return read;
}

uint64_t ProgramHash(const Config& config) {
  // FNV-1a: simple enough to be written again by whoever reads program files elsewhere.
  uint64_t hash = 0xcbf29ce484222325ull;
  const ConfigTable& table = AllKeys();
  for (std::size_t i = 0; i < table.keys.size(); ++i) {
    if (table.keys[i].scope != ConfigScope::kProgram) continue;
    for (const char c : Str(table.keys[i].key, "=", MemberText(config, i), "\n"))
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  }
  return hash;
}

std::string ConfigPage() {
  std::string page =
      "| key | values | npu1-edge | npu1-server | scope | meaning |\n"
      "| --- | --- | --- | --- | --- | --- |\n";
  std::string_view section;
  for (const ConfigKey& key : ConfigKeys()) {
    if (SectionOf(key) != section) {
      section = SectionOf(key);
      for (const Section& s : AllKeys().sections) {
        if (s.name == section) page += Str("| **`", section, "`** | | | | | **", s.doc, "** |\n");
      }
    }
    page += Str("| `", key.key, "` | ", key.Range(), " | ", key.edge, " | ", key.server, " | ",
                ScopeText(key.scope), " | ", key.doc, " |\n");
  }
  return page;
}

std::string ConfigHelp() {
  std::string text;
  for (const ConfigKey& key : ConfigKeys()) {
    text += Str("  ", key.key, " = ", key.edge);
    if (key.server != key.edge) text += Str(" (npu1-server: ", key.server, ")");
    text += Str("\n      ", key.doc, " ", key.Range(), ".\n");
  }
  return text;
}

}  // namespace lazuli::npu
