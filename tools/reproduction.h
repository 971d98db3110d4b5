// Folders that errors name (lazy/debug/reproduction.h), for running them again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace lazuli::tools {

struct Reproduction {
  std::string folder, module;  // paths
  std::string device, doing, error;
  uint64_t seed = 0;
  std::vector<std::pair<std::string, std::string>> flags;

  static bool IsOne(const std::string& path);
  // An error names the file and line that is wrong.
  static absl::StatusOr<Reproduction> Open(const std::string& folder);
  // Those that the environment has keep its values; those that write files stay off.
  absl::Status SetFlags() const;
  // Whether this is the failure of the folder, in a sentence.
  std::string Verdict(const absl::Status& now) const;
};

}  // namespace lazuli::tools
