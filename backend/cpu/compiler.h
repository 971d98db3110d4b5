// CompileProgram: from un-optimised HLO to thunks. The passes and their order are the body of
// compiler.cc.
#pragma once

#include <memory>

#include "absl/status/statusor.h"

#include "backend/cpu/program.h"

namespace lazuli::backend {

absl::StatusOr<Program> CompileProgram(std::unique_ptr<hlo::Module> module,
                                       const CompileOptions& options);
// The same for a computation that an instruction calls; see Program.
absl::StatusOr<Program> CompileCalleeProgram(std::unique_ptr<hlo::Module> module,
                                             const CompileOptions& options, int depth,
                                             bool keeps_parameters);

}  // namespace lazuli::backend
