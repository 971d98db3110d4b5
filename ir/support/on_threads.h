// OnThreads: independent pieces of work on threads of their own.
//
// For work that takes milliseconds and waits for others, as the compiles of kernels; loops over elements
// use ParallelFor.
#pragma once

#include <cstddef>

#include "absl/functional/function_ref.h"

#include "ir/support/namespaces.h"

namespace lazuli::ir {

// Calls work(0) to work(count - 1), the caller's thread among at most `threads`; fewer if the system has
// no more. An exception that leaves `work` ends the process.
void OnThreads(std::size_t count, int threads, absl::FunctionRef<void(std::size_t)> work);

}  // namespace lazuli::ir
