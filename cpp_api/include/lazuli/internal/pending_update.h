// PendingUpdate: how an optimiser notices a loop that never syncs.
#pragma once

#include <cstdint>

#include "lazuli/export.h"
#include "lazuli/tensor.h"

namespace lazuli::internal {

class LAZULI_API PendingUpdate {
 public:
  // Before an update is recorded. If the one before is still pending, runs what this thread has
  // recorded: an iteration, so that each is one program, the same each time. Says so once, with the
  // line, on standard error; `who` is the optimiser.
  void RunFirst(const char* who, SourceLocation loc);
  // An update was recorded.
  void Set();

 private:
  // The thread's context, and how often it had been synced.
  std::uint64_t context_ = 0;
  std::uint64_t syncs_ = 0;
};

}  // namespace lazuli::internal
