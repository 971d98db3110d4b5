// Runs modules on clients, for tests.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "backend/client/client.h"
#include "ir/types/literal.h"

namespace lazuli {

struct RunResult {
  std::vector<ir::Literal> outputs;
  backend::ExecutableStats stats;
  std::string text;  // of the executable
};

// Compiles `hlo` on this platform.
absl::StatusOr<backend::ExecutablePtr> CompileOn(std::string_view platform, std::string_view hlo,
                                                 const backend::CompileOptions& options = {});

// Runs an executable of this platform. Tuples are passed as their leaves, rank-0 leaves behind the
// last array as scalars.
absl::StatusOr<RunResult> RunExecutable(std::string_view platform, backend::Executable& executable,
                                        const std::vector<ir::Literal>& parameters);

// Registers the platforms once, then compiles and runs `hlo` on this one.
absl::StatusOr<RunResult> RunOn(std::string_view platform, std::string_view hlo,
                                const std::vector<ir::Literal>& parameters,
                                const backend::CompileOptions& options = {});

// "// name: value" lines at the top of a corpus file.
std::map<std::string, std::string> HeaderOf(std::string_view hlo);

}  // namespace lazuli
