// The configuration of the simulated machine: two presets, files in TOML, overrides.
//
//   LAZULI_ASSIGN_OR_RETURN(const Config config, ReadConfig("npu1-edge", "mxu.rows=64"));
//   const int64_t peak = config.mxu.rows * config.mxu.cols;
//
// A key is one row of config.def. What is wrong in a file or an override is an error that names the
// key, its line, and what it may be. docs/npu.md lists the keys.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "backend/npu/sim/namespace.h"

namespace lazuli::npu {

enum class Dataflow : uint8_t { kWs, kOs, kIs };
enum class F32Mode : uint8_t { kNative, kX1, kX3, kX6 };
enum class DramModel : uint8_t { kFlat, kBanked };
enum class Topology : uint8_t { kRing, kTorus };
enum class EnergyTableName : uint8_t { kHorowitz45, kAladdin40 };

// Members are the keys: `mxu.rows` is config.mxu.rows. Without a reader's help it is npu1-edge.
struct Config {
  std::string name = "npu1-edge";  // a preset's, or what a file calls itself

#define LAZULI_NPU_SECTION(section, doc) struct section##_keys {
#define LAZULI_NPU_END(section)                           \
  bool operator==(const section##_keys&) const = default; \
  }                                                       \
  section;
#define LAZULI_NPU_INT(scope, name, edge, ...) int64_t name = edge;
#define LAZULI_NPU_REAL(scope, name, edge, ...) double name = edge;
#define LAZULI_NPU_BOOL(scope, name, edge, ...) bool name = edge;
#define LAZULI_NPU_CHOICE(scope, type, name, edge, ...) type name = type::edge;
#define LAZULI_NPU_NAMES(scope, name, edge, ...) std::string name = edge;
#include "backend/npu/sim/config.def"
#undef LAZULI_NPU_SECTION
#undef LAZULI_NPU_END
#undef LAZULI_NPU_INT
#undef LAZULI_NPU_REAL
#undef LAZULI_NPU_BOOL
#undef LAZULI_NPU_CHOICE
#undef LAZULI_NPU_NAMES

  bool operator==(const Config&) const = default;

  int64_t spm_bytes() const { return spm.kb * 1024; }
  int64_t acc_bytes() const { return acc.rows * mxu.cols * 4; }
  int64_t dram_bytes() const { return dram.mb * 1024 * 1024; }
};

enum class ConfigType : uint8_t { kInt, kReal, kBool, kChoice, kNames };
enum class ConfigScope : uint8_t { kProgram, kTiming, kRun };

// A row of config.def.
struct ConfigKey {
  std::string key;  // "mxu.rows"
  ConfigType type;
  ConfigScope scope;
  double min, max;        // of numbers, both allowed
  std::string_view unit;  // of numbers; "2^n bytes" for powers of two
  std::string_view choices;
  std::string_view doc;
  std::string edge, server;  // the presets' values

  // What the key may be: "1 to 1024 PEs", "4 to 4096 bytes (powers of 2)", "ws, os or is".
  std::string Range() const;
};
std::span<const ConfigKey> ConfigKeys();

// A preset's configuration; an error lists the presets.
absl::StatusOr<Config> Preset(std::string_view name);
// Sets keys: "mxu.rows=64,spm.kb=2048". Does not check what several keys say together.
absl::Status SetKeys(std::string_view overrides, Config& config);
// OK if the keys fit each other.
absl::Status Check(const Config& config);
// The value of a key as a file or an override would write it. Dies for a key that does not exist.
std::string KeyText(const Config& config, std::string_view key);

// A file's contents: `name = "..."` (a preset's name gives the keys not set their values), and keys
// in sections. `file` is for errors, which begin with "FILE:LINE: ".
absl::StatusOr<Config> ParseConfig(std::string_view toml, std::string_view file);
// The configuration as a file that reads back to it.
std::string ToToml(const Config& config);

// A preset by its name or a file by its path, then the overrides, checked.
absl::StatusOr<Config> ReadConfig(std::string_view preset_or_file, std::string_view overrides);
// What NPU_CONFIG and NPU_SET say.
absl::StatusOr<Config> ConfigFromEnvironment();

// Of the keys of scope Program: equal in every build and on every host. A program file holds it.
uint64_t ProgramHash(const Config& config);

// The keys as a table of Markdown, section by section, and as plain text for --help-config.
std::string ConfigPage();
std::string ConfigHelp();

}  // namespace lazuli::npu
