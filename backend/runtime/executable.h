// ThunkExecutable: runs a ThunkProgram whose buffers lie in host memory (HostBuffer).
//
// A run obtains all its memory first, so that one that does not get it has changed nothing: one
// block for the entry's frame and the table of buffers, what kept packings need, and the outputs,
// which take the memory of parameters that the caller gives up.
#pragma once

#include <functional>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

#include "backend/client/client.h"
#include "backend/runtime/allocator.h"
#include "backend/runtime/program.h"
#include "backend/runtime/thunk_data.h"

namespace lazuli::backend {

// What a device wants around the thunks of each run, on the thread that runs them: a library's
// number of threads, say. It calls `thunks` once and returns what that returns.
using AroundRun =
    std::function<absl::Status(const ThunkProgram&, absl::FunctionRef<absl::Status()> thunks)>;

// `first` is where a run without buffers takes place that names no device. `kinds` says what a saved
// program is made of, and outlives the executable.
ExecutablePtr MakeThunkExecutable(ThunkProgram program, std::shared_ptr<Allocator> allocator,
                                  Device first, const ProgramKinds& kinds, AroundRun around = {});

}  // namespace lazuli::backend
