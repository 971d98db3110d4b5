// PT_XLA_DEBUG: blocks of text about each compile (level 1) and each run (level 2), line for line as
// torch_xla writes them, and one more that says what changed since the nearest cached program.
//
// Compilation Analysis: ================================================================================
// Compilation Analysis: Compilation Cause
// Compilation Analysis:   most likely user code trying to access tensor value before torch_xla.sync
// Compilation Analysis: Graph Info:
// Compilation Analysis:   Graph Hash: 1f0c2ab4e3a95d11
// Compilation Analysis:   Number of Graph Inputs: 3
// Compilation Analysis:   Number of Graph Outputs: 1
// Compilation Analysis: Python Frame Triggered Execution:
// Compilation Analysis:   main (train.cc:41)
// ...
//
// The tools that read them stay usable, which is why the words are torch_xla's.
#pragma once

#include <cstdint>
#include <string>

#include "lazy/execution/sync.h"

namespace lazuli::lazy {

// 0: nothing. PT_XLA_DEBUG_LEVEL, or 100 where only PT_XLA_DEBUG is set.
int64_t AnalysisLevel();

// What is known of a sync before it runs.
struct AnalyzedGraph {
  SyncReason reason = SyncReason::kUser;
  SiteId site = ir::kNoSite;
  uint64_t hash = 0;
  std::size_t inputs = 0, outputs = 0;
};
enum class Analysis : uint8_t { kCompilation, kExecution };
std::string GraphBlock(Analysis analysis, const AnalyzedGraph& graph, int64_t max_frames);
// Sizes of a compiled program.
std::string PostCompilationBlock(const CachedProgram& program);
// Empty for the first program of its kind.
std::string WhatChangedBlock(const CachedProgram& program);

// Observes syncs and compiles if the flags ask for it; idempotent.
void InitializeGraphAnalysis();

}  // namespace lazuli::lazy
