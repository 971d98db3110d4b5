// The trace of a program as a picture.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace lazuli::tools {

// Assembles the file, runs it on arrays of zeros and draws what its units do until a cycle: a line
// for each unit of the first device, arrows for tokens, curves of the DRAM's bandwidth and of the
// live bytes of the first scratchpad.
absl::StatusOr<std::string> DrawTrace(const std::string& file, const std::string& set, int64_t to);

}  // namespace lazuli::tools
