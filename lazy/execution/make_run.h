// What a sync makes of a program: the run that is queued, and whether there is memory for it.
#pragma once

#include <cstdint>

#include "absl/types/span.h"

#include "lazy/execution/executor.h"
#include "lazy/execution/sync_state.h"

namespace lazuli::lazy {

// Before anything changes: whether there is memory for the run, of which `bytes` are to be obtained.
absl::Status CheckMemory(const CachedProgram& program, const SyncState& state,
                         backend::Device device, int64_t& bytes);

// The run of a program, with a handle for each root: all the memory that a sync asks for. `checked`: the
// checks that were recorded, in their order.
Executor::Entry MakeRun(Context& context, absl::Span<const Context::Checked> checked,
                        backend::Device device, const SyncState& state, CachedProgramPtr program);

}  // namespace lazuli::lazy
