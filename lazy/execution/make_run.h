// What a sync makes of a program: the run that is queued, and whether there is memory for it.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

#include "lazy/execution/executor.h"
#include "lazy/execution/sync_state.h"

namespace lazuli::lazy {

// Before anything changes: whether there is memory for the run, of which `bytes` are to be obtained.
absl::Status CheckMemory(const CachedProgram& program, const SyncState& state,
                         backend::Device device, int64_t& bytes);

// What becomes of an output of a run.
struct RootOfRun {
  const DataHandle* replaced = nullptr;  // what it is written over
  int32_t before = -1;                   // which output has that, if it was pending
  bool is_wanted = true;                 // by a storage
  bool is_view = false;                  // that storage
};
// Fills in the rest of a run that has a program, a device, a context, inputs, scalars and checks: a
// handle for each root, of the shape that `shape` gives, and what is written over.
void CompleteRun(absl::Span<const RootOfRun> roots,
                 absl::FunctionRef<const Shape&(std::size_t)> shape, Run& run);

// The run of a program, with a handle for each root: all the memory that a sync asks for. `checked`: the
// checks that were recorded, in their order.
Executor::Entry MakeRun(Context& context, absl::Span<const Context::Checked> checked,
                        backend::Device device, const SyncState& state, CachedProgramPtr program);

}  // namespace lazuli::lazy
