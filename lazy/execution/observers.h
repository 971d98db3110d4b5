// Observers of syncs and compiles: dumps, profiles, saved graphs and explanations of recompiles.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "ir/graph/post_order.h"
#include "lazy/execution/cached_program.h"
#include "lazy/tensor/context.h"

namespace lazuli::lazy {

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
  const CachedProgram& program;
  backend::Device device;
  SiteId site;  // of the call that syncs
  std::chrono::nanoseconds time;
};
using CompileObserver = std::function<void(const CompileEvent&)>;
// Likewise.
void SetCompileObserver(CompileObserver observer);
void AddCompileObserver(CompileObserver observer);

// Shows an event to all observers.
void Notify(const SyncEvent& event);
void Notify(const CompileEvent& event);

}  // namespace lazuli::lazy
