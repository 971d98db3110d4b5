// What the command-line tools share: options, files, errors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace lazuli::tools {

// The value of `--name=value`, if the argument is that.
bool TakeValue(std::string_view argument, std::string_view name, std::string* value);
// A number that takes all of the text; the error names the option.
absl::StatusOr<int64_t> ParseInteger(std::string_view option, std::string_view text);
absl::StatusOr<double> ParseNumber(std::string_view option, std::string_view text);

// All bytes of a file; of standard input for "-".
absl::StatusOr<std::string> ReadAll(const std::string& file);

// Runs a tool's main: prints "TOOL: message" for an error or an exception and returns the exit
// status.
int ToolMain(std::string_view tool, absl::Status (*run)(const std::vector<std::string_view>&),
             int argc, char** argv);

}  // namespace lazuli::tools
