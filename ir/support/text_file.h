// Writing text so that no reader ever sees half of it.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

#include "ir/support/namespaces.h"

namespace lazuli::ir {

// Replaces or makes the file, through a temporary one beside it; folders above it are made. An
// error names the file and why.
absl::Status WriteTextFile(const std::string& path, std::string_view text);

}  // namespace lazuli::ir
