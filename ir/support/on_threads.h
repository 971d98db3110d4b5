// OnThreads: independent pieces of work on threads of their own.
//
// For pieces that take milliseconds each, such as compiling a kernel. Loops over elements use ParallelFor.
#pragma once

#include <cstddef>

#include "absl/functional/function_ref.h"

#include "ir/support/namespaces.h"

namespace lazuli::ir {

// Calls work(0) to work(count - 1) on at most `threads` threads, of which the caller's is one; on fewer if
// the system refuses a thread. An exception that leaves `work` ends the process.
void OnThreads(std::size_t count, int threads, absl::FunctionRef<void(std::size_t)> work);

}  // namespace lazuli::ir
