// CompileProgram: from un-optimised HLO to thunks. The passes and their order are the body of
// compiler.cc.
#pragma once

#include <memory>

#include "absl/status/statusor.h"

#include "backend/cpu/program.h"

namespace lazuli::backend {

absl::StatusOr<Program> CompileProgram(std::unique_ptr<hlo::Module> module,
                                       const CompileOptions& options);

}  // namespace lazuli::backend
