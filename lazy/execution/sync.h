// The executor of lazy graphs: what mark_step, sync and every read call.
//
// A sync collects the pending storages, traces their graph, finds its program by the canonical key
// or emits and compiles it, hands the storages handles of the data to come, and queues the run.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph/post_order.h"
#include "lazy/execution/program.h"
#include "lazy/tensor/context.h"

namespace lazuli::lazy {

// Installs the engine; idempotent, thread-safe.
void InitializeExecution();

// What a sync is about to run: shown to observers (dumps) before anything can fail.
struct SyncEvent {
  const Trace& trace;
  backend::Device device;
  SyncReason reason;
  SiteId site;    // of the call that syncs
  uint64_t hash;  // of the program
  bool cached;
  const std::string& name;  // of the program
};
using SyncObserver = std::function<void(const SyncEvent&)>;
// One observer, called under the context's lock; empty to remove it.
void SetSyncObserver(SyncObserver observer);
// One more, from now on, called before that one.
void AddSyncObserver(SyncObserver observer);

// A program that was just compiled: shown to the compile observer.
struct CompileEvent {
  const Program& program;
  backend::Device device;
  SiteId site;  // of the call that syncs
  std::chrono::nanoseconds time;
};
using CompileObserver = std::function<void(const CompileEvent&)>;
// Likewise.
void SetCompileObserver(CompileObserver observer);
void AddCompileObserver(CompileObserver observer);

// How programs of the device are compiled, as flags, threads and the passes of every program are
// now. All of it is in their keys.
absl::StatusOr<backend::CompileOptions> CompileOptionsFor(backend::Device device);

// The module for a trace, as sync would compile it: what dumps show. `aliases` say which outputs
// update which data leaves; with a signature, which parameters of it.
absl::StatusOr<lowering::EmittedModule> EmitTrace(
    const Trace& trace, std::string name, std::vector<hlo::Alias> aliases = {},
    std::optional<lowering::EmitSignature> signature = {});

// The program of the calling thread's last sync, or null.
ProgramPtr LastProgram();

// Why the calling thread's last compile was needed: the last that had a relative in the cache, if
// there was one. Null before the first.
const Recompile* LastRecompile();

ProgramCache& GetProgramCache();

}  // namespace lazuli::lazy
