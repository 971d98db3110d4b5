// Modules from files, for tools.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "ir/hlo/module.h"

namespace lazuli::tools {

// The verified module of a file: HLO text, or a serialised HloModuleProto if its name ends in .pb.
// An error reads "FILE:3:14: ...".
absl::StatusOr<std::unique_ptr<hlo::Module>> LoadModule(const std::string& file);

}  // namespace lazuli::tools
