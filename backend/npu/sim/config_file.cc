// Reading configuration files: the only source that includes toml++, which costs seconds to
// compile.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <system_error>

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "backend/npu/sim/config.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

std::string Where(std::string_view file, const toml::source_region& source) {
  return Str(file, ":", source.begin.line, ": ");
}

bool Fits(const toml::node& node, ConfigType type) {
  switch (type) {
    case ConfigType::kInt:
      return node.is_integer();
    case ConfigType::kReal:
      return node.is_number();
    case ConfigType::kBool:
      return node.is_boolean();
    case ConfigType::kChoice:
      return node.is_string();
    case ConfigType::kNames:
      return node.is_string() ||
             (node.is_array() && (node.as_array()->empty() ||
                                  node.as_array()->is_homogeneous(toml::node_type::string)));
  }
  return false;
}

// A value as an override would give it.
std::string ValueText(const toml::node& node) {
  if (const auto* v = node.as_integer()) return Str(v->get());
  if (const auto* v = node.as_floating_point()) return Str(v->get());
  if (const auto* v = node.as_boolean()) return Str(v->get());
  if (const auto* v = node.as_string()) return v->get();
  std::string names;
  if (const auto* array = node.as_array()) {
    for (const toml::node& name : *array) names += (names.empty() ? "" : "+") + ValueText(name);
  }
  return names;
}

absl::Status SetFromNode(const std::string& key, const toml::node& node, Config& config) {
  for (const ConfigKey& row : ConfigKeys()) {
    if (row.key == key && !Fits(node, row.type)) {
      std::ostringstream kind;
      kind << node.type();
      return InvalidArgument(key, " is of type ", kind.str(), ": it is ", row.Range());
    }
  }
  const std::string value = ValueText(node);
  // No value has a comma; one that does would begin another override.
  if (value.find(',') != std::string::npos) return InvalidArgument(key, "=", value, ": no comma");
  return SetKeys(Str(key, "=", value), config);
}

absl::Status SetFromTable(const toml::table& table, const std::string& prefix,
                          std::string_view file, Config& config) {
  for (const auto& [name, node] : table) {
    const std::string key = prefix + std::string(name.str());
    if (key == "name") continue;
    const toml::table* inner = prefix.empty() ? node.as_table() : nullptr;
    const absl::Status status =
        inner != nullptr ? SetFromTable(*inner, key + ".", file, config)
                         : Prefixed(SetFromNode(key, node, config), Where(file, node.source()));
    LAZULI_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Config> ParseConfig(std::string_view toml, std::string_view file) {
  const toml::parse_result parsed = toml::parse(toml);
  if (!parsed)
    return InvalidArgument(Where(file, parsed.error().source()), parsed.error().description());
  const toml::table& table = parsed.table();
  Config config;
  if (const toml::node* name = table.get("name"); name != nullptr) {
    if (!name->is_string()) return InvalidArgument(Where(file, name->source()), "name is a text");
    const std::string text = ValueText(*name);
    if (auto preset = Preset(text); preset.ok()) config = *std::move(preset);
    config.name = text;
  }
  LAZULI_RETURN_IF_ERROR(SetFromTable(table, "", file, config));
  LAZULI_RETURN_IF_ERROR(Prefixed(Check(config), Str(file, ": ")));
  return config;
}

absl::StatusOr<Config> ReadConfig(std::string_view preset_or_file, std::string_view overrides) {
  absl::StatusOr<Config> config = Preset(preset_or_file);
  if (!config.ok()) {
    const std::string path(preset_or_file);
    std::error_code ignored;
    std::ifstream in;
    if (!std::filesystem::is_directory(path, ignored)) in.open(path, std::ios::binary);
    if (!in.is_open())
      return NotFound("'", path,
                      "' is neither a preset (npu1-edge, npu1-server) nor a file that can be read");
    using Iterator = std::istreambuf_iterator<char>;
    config = ParseConfig(std::string(Iterator(in), Iterator()), path);
    if (!config.ok()) return config;
  }
  LAZULI_RETURN_IF_ERROR(SetKeys(overrides, *config));
  LAZULI_RETURN_IF_ERROR(Check(*config));
  return config;
}

}  // namespace lazuli::npu
