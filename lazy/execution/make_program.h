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
ProgramPtr FindProgram(Trace& trace, backend::Device device, const backend::CompileOptions& options,
                       KeyWriter& key, uint64_t& hash);

// A program without its executable, and the module to compile for it.
struct UncompiledProgram {
  std::shared_ptr<Program> program;
  std::unique_ptr<hlo::Module> module;
  std::vector<hlo::Alias> aliases;
};
// `replaced`: by root, the data that it is written over, or null.
absl::StatusOr<UncompiledProgram> Emit(const Trace& trace,
                                       const std::vector<const DataHandle*>& replaced,
                                       backend::Device device,
                                       const backend::CompileOptions& options, const KeyWriter& key,
                                       uint64_t hash, std::string name);

// Compiles the module and puts the program into the cache. `unlocked` calls its argument, which takes
// long, without the lock of the context that the trace belongs to.
absl::StatusOr<ProgramPtr> Compile(UncompiledProgram emitted, const Trace& trace,
                                   backend::Device device, const backend::CompileOptions& options,
                                   absl::FunctionRef<void(absl::FunctionRef<void()>)> unlocked);

}  // namespace lazuli::lazy
