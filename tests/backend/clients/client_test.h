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

// Registers the platforms once, then compiles and runs `hlo` on this one. Rank-0 parameters behind
// the last array are passed as scalars.
absl::StatusOr<RunResult> RunOn(std::string_view platform, std::string_view hlo,
                                const std::vector<ir::Literal>& arguments);

// "// name: value" lines at the top of a corpus file.
std::map<std::string, std::string> HeaderOf(std::string_view hlo);

}  // namespace lazuli
