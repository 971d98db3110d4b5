// LAZULI_TRACE_FILE: the spans of the process - tracing, compiles, runs, thunks - as a Chrome
// trace.
//
// Open it in chrome://tracing or Perfetto: one lane per thread, so that recording and running can be
// seen to overlap.
#pragma once

#include <string>

#include "absl/status/status.h"

#include "ir/support/namespaces.h"

namespace lazuli::lazy {

// Takes the spans so far and replaces `path` by them, whole or not at all.
absl::Status WriteTraceFile(const std::string& path);

// Turns spans on and writes them at exit if the flag names a file. What registers exit handlers
// later, as the execution thread does, has stopped by then.
void InitializeTraceFile();

}  // namespace lazuli::lazy
