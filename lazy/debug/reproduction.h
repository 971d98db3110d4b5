// Folders that repeat a failure: what lazuli-run needs, and what people want to see.
//
//   module.hlo         the program as it went into Compile
//   graph.txt          the graph that it was made of, with lines
//   reproduction.txt   device, inputs, versions, flags
//   error.txt
//
// A process writes LAZULI_REPRODUCTIONS of them at most. Inputs are said by shape: lazuli-run draws
// their values from the seed.
#pragma once

#include <string>

#include "absl/status/statusor.h"

#include "lazy/execution/failure.h"

namespace lazuli::lazy {

// Observes failures: writes folders, XLA_SAVE_HLO_FILE, and for XLA_DUMP_HLO_GRAPH what the error goes
// on with. Idempotent.
void InitializeReproductions();

// Makes the folder and returns its path, or "" if the process has written as many as it may.
absl::StatusOr<std::string> WriteReproduction(const FailureEvent& event);

// IR { ... } of a program's graph.
std::string OutlineText(const GraphOutline& outline);

}  // namespace lazuli::lazy
