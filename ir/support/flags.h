// Flags and environment variables: one row each, from which docs and --help derive.
//
//   LAZULI_FLAG(String, dump_dir, "LAZULI_DUMP_DIR", "", "Write every module ... into this folder.")
//   if (flags().dump_dir().empty()) ...
//
// A row is: type, C++ name, variable, default, documentation. A variable that begins with "--" is a
// flag in the value of XLA_FLAGS (ir/support/environment.h). Types are Bool ("1", "true", "yes",
// "on" / "0", "false", "no", "off"; anything else is an error), Int, Bytes (with K, M, G), Levels (a
// number, and others for single names: "2,cpu_fuse=5") and String.
// Rows lie in the flags.def of the folder that owns them; the build joins those (cmake/Tables.cmake).
//
// A value is read from the environment once, when first asked for; SetFlag replaces it (tests,
// tools). A value that does not parse is an error that names the variable, given by FlagErrors()
// and raised by the first sync, and so is a name that looks like a misspelled one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

#include "ir/support/namespaces.h"

namespace lazuli::ir {

enum class FlagType : uint8_t { kBool, kInt, kBytes, kLevels, kString };

struct FlagRow {
  std::string_view name;  // the environment variable, or "--xla_cpu_ftz"
  FlagType type;
  std::string default_text;
  std::string_view doc;
};
std::span<const FlagRow> FlagRows();
// "bytes (K, M, G)"
std::string_view TypeText(FlagType type);
// What the flag of this row is now, as text that SetFlag takes.
std::string FlagText(const FlagRow& row);

class Flags {
 public:
  using Bool = bool;
  using Int = int64_t;
  using Bytes = int64_t;
  using Levels = int64_t;  // the number; LevelOf has the others
  using String = const std::string&;
#define LAZULI_FLAG(type, name, variable, default_value, doc) type name() const;
#include "tables/flags.def"
#undef LAZULI_FLAG
};
inline Flags flags() { return {}; }

// "NAME=value" of each flag that is not as its row says, a line for each.
std::string ChangedFlags(std::string_view prefix = "");

// What a flag of type Levels says of a name; -1 if it says nothing of it.
int64_t LevelOf(std::string_view variable, std::string_view name);
std::vector<std::string> LevelNames(std::string_view variable);

// Replaces the value of the flag with this environment name; the error names what does not parse or
// exist.
absl::Status SetFlag(std::string_view variable, std::string_view value);
// What LAZULI_DISABLE_PASSES, --xla_disable_hlo_passes and --xla_disable_all_hlo_passes name together,
// joined by commas.
std::string DisabledPasses();
inline constexpr std::string_view kAllPasses = "*";

// OK, or the first thing that is wrong with the environment: a value that does not parse, a name
// that looks like a misspelled one. Looks once; says once on standard error what has no effect.
absl::Status FlagErrors();

}  // namespace lazuli::ir
