// HostTransfers: what programs on one device receive (infeed) and send (outfeed) while they run.
//
// Two queues, first in, first out; a transfer is its arrays, the leaves of the shape that the
// program names. Runs are synchronous, so a program never waits: an empty queue is an error, and
// what a program sends is kept until somebody takes it. Thread-safe.
#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"

#include "ir/types/literal.h"

namespace lazuli::hlo {

class HostTransfers {
 public:
  using Transfer = std::vector<Literal>;

  void PushInfeed(Transfer transfer);
  // The oldest transfer as a value of this shape. If there is none (FailedPrecondition) or it has
  // other arrays (InvalidArgument), the queue stays as it is.
  absl::StatusOr<Literal> PopInfeed(const Shape& shape);

  // Copies the arrays, which may lie in memory of the run.
  void PushOutfeed(const Literal& value);
  std::optional<Transfer> PopOutfeed();

 private:
  std::mutex mutex_;
  std::deque<Transfer> infeed_, outfeed_;
};

}  // namespace lazuli::hlo
