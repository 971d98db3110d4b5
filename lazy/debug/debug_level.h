// LAZULI_DEBUG: one knob from counters to LLVM IR, all to standard error or LAZULI_DEBUG_FILE.
//
//   1  the metrics report at exit
//   2  and a line for each program that is compiled: where from, how large, how long; and why,
//      if the cache held one like it
//   3  and its HLO, as it goes into Compile
//   4  and the optimised module with its thunks
//   5  and the LLVM IR of each kernel, before and after optimisation (backend/cpu/codegen)
//
// PASS=N behind the number is of one pass alone (lowering/passes/pass.cc), kernels=5 of 5 alone.
#pragma once

#include <string>

#include "lazy/execution/sync.h"

namespace lazuli::lazy {

// What a level shows of a compiled program; empty below 2.
std::string CompileText(const CompileEvent& event, int64_t level);

// Observes compiles and exit as the flag says.
void InitializeDebugLevel();

}  // namespace lazuli::lazy
