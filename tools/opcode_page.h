// docs/hlo.md: every opcode, and what has been tried with it: parsing, printing, verifying,
// evaluating and compiling its uses in tests/ir/hlo/testdata/opcodes.txt.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace lazuli::tools {

absl::StatusOr<std::string> OpcodePage(const std::string& uses_file);

}  // namespace lazuli::tools
