// CompileModule: from un-optimised HLO to thunks. The passes and their order are the body of
// compiler.cc.
#pragma once

#include <memory>

#include "absl/status/statusor.h"

#include "backend/runtime/op_filter.h"
#include "backend/runtime/program.h"
#include "lowering/passes/pass.h"

namespace lazuli::cpu {

// The passes that come before thunks. What the filter denies is in no kernel; is_part: as in
// CompileOptions.
void AddCpuPipeline(lowering::PassPipeline& pipeline, const OpFilter& filter = {},
                    bool is_part = false);
// Makes the passes of this device known by name (lowering/passes/registry.h).
void RegisterCpuPasses();

absl::StatusOr<ThunkProgram> CompileModule(std::unique_ptr<hlo::Module> module,
                                           const CompileOptions& options);

}  // namespace lazuli::cpu
