// Flags and environment variables: one row each, from which docs and --help derive.
//
//   LAZULI_FLAG(String, dump_dir, "LAZULI_DUMP_DIR", "", "Write every module ... into this folder.")
//   if (flags().dump_dir().empty()) ...
//
// A row is: type, C++ name, variable, default, documentation. Types are Bool ("1", "true", "yes",
// "on" / "0", "false", "no", "off"; anything else is an error), Int, Bytes (with K, M, G) and String.
// Rows lie in the flags.def of the folder that owns them; the build joins those (cmake/Tables.cmake).
//
// A value is read from the environment once, when first asked for; SetFlag replaces it (tests,
// tools). A value that does not parse is an error that names the variable, given by FlagErrors()
// and raised by the first sync.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"

#include "ir/support/namespaces.h"

namespace lazuli::ir {

enum class FlagType : uint8_t { kBool, kInt, kBytes, kString };

struct FlagRow {
  std::string_view name;  // the environment variable
  FlagType type;
  std::string default_text;
  std::string_view doc;
};
std::span<const FlagRow> FlagRows();

class Flags {
 public:
  using Bool = bool;
  using Int = int64_t;
  using Bytes = int64_t;
  using String = const std::string&;
#define LAZULI_FLAG(type, name, variable, default_value, doc) type name() const;
#include "tables/flags.def"
#undef LAZULI_FLAG
};
inline Flags flags() { return {}; }

// Replaces the value of the flag with this environment name; the error names what does not parse or
// exist.
absl::Status SetFlag(std::string_view variable, std::string_view value);
// OK, or the first value in the environment that did not parse.
absl::Status FlagErrors();

}  // namespace lazuli::ir
