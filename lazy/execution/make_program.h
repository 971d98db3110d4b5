// Programs of traces: found by their keys, or emitted and compiled.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"

#include "ir/graph/key.h"
#include "lazy/execution/sync.h"

namespace lazuli::lazy {

// What the flags of narrower types ask for: XLA_USE_32BIT_LONG, XLA_USE_BF16, XLA_DOWNCAST_BF16.
lowering::Narrowing NarrowingFromFlags();

// Traces the graph of the roots, writes its key and looks its program up; null if there is none yet.
CachedProgramPtr FindProgram(Trace& trace, backend::Device device,
                             const backend::CompileOptions& options, KeyWriter& key,
                             uint64_t& hash);

// The program of the trace, which is not compiled yet. `replaced`: by root, the data that it is written
// over, or null.
absl::StatusOr<std::shared_ptr<CachedProgram>> Emit(
    const Trace& trace, const std::vector<const DataHandle*>& replaced, backend::Device device,
    const backend::CompileOptions& options, const KeyWriter& key, uint64_t hash, std::string name);

// Compiles the program and puts it into the cache. `unlocked` calls its argument, which takes long,
// without the lock of the context that the trace belongs to.
absl::StatusOr<CachedProgramPtr> Compile(
    std::shared_ptr<CachedProgram> program, const Trace& trace, backend::Device device,
    absl::FunctionRef<void(absl::FunctionRef<void()>)> unlocked);

}  // namespace lazuli::lazy
