// What an optimiser asks of the graph that it records into: PendingUpdate, whether its last update is
// still pending, and UpdateOutcome, whether an update was taken.
#pragma once

#include <cstdint>
#include <utility>

#include "lazuli/export.h"
#include "lazuli/tensor.h"

namespace lazuli::internal {

// What becomes of what this thread records now. A run in which a check fails, a label out of range,
// takes no updates in place; what an optimiser counts on the host goes back then, too.
class LAZULI_API UpdateOutcome {
 public:
  enum class State : std::uint8_t { kUnknown, kTaken, kNotTaken };

  UpdateOutcome() = default;
  UpdateOutcome(UpdateOutcome&& other) noexcept : impl_(std::exchange(other.impl_, nullptr)) {}
  UpdateOutcome& operator=(UpdateOutcome&& other) noexcept {
    std::swap(impl_, other.impl_);
    return *this;
  }
  ~UpdateOutcome();
  static UpdateOutcome OfRecording();
  State state() const;

 private:
  void* impl_ = nullptr;
};

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
