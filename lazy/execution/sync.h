// The executor of lazy graphs: what mark_step, sync and every read call.
//
// A sync collects the pending storages, traces their graph, finds its program by the canonical key
// or emits and compiles it, hands the storages handles of the data to come, and queues the run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/graph/post_order.h"
#include "lazy/execution/cached_program.h"
#include "lazy/execution/observers.h"
#include "lazy/tensor/context.h"

namespace lazuli::lazy {

// Installs the engine; idempotent, thread-safe.
void InitializeExecution();

// How programs of the device are compiled, as flags, threads and the passes of every program are
// now. All of it is in their keys.
absl::StatusOr<backend::CompileOptions> CompileOptionsFor(backend::Device device);
// The same for a program that a sync compiles, which is a part of what is recorded.
absl::StatusOr<backend::CompileOptions> SyncOptionsFor(backend::Device device);

// The module for a trace, as sync would compile it: what dumps show. `aliases` say which outputs
// update which data leaves; with a signature, which parameters of it.
absl::StatusOr<lowering::EmittedModule> EmitTrace(
    const Trace& trace, std::string name, std::vector<hlo::Alias> aliases = {},
    std::optional<lowering::EmitSignature> signature = {});

// The program of the calling thread's last sync, or null.
CachedProgramPtr LastProgram();

// Why the calling thread's last compile was needed: the last that had a relative in the cache, if
// there was one. Null before the first.
const Recompile* LastRecompile();

ProgramCache& GetProgramCache();

}  // namespace lazuli::lazy
