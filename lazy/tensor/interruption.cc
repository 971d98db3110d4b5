#include "lazy/tensor/interruption.h"

#include <atomic>
#include <chrono>

#include "ir/support/status.h"

namespace lazuli::lazy {
namespace {

// What somebody who presses Ctrl-C does not notice, and what costs nothing to a wait of seconds.
constexpr std::chrono::milliseconds kInterval{50};

std::atomic<InterruptCheck> installed{nullptr};

}  // namespace

void SetInterruptCheck(InterruptCheck check) { installed = check; }

absl::Status InterruptibleWait(std::condition_variable& condition,
                               std::unique_lock<std::mutex>& lock, absl::FunctionRef<bool()> done) {
  const InterruptCheck check = installed;
  if (check == nullptr) {
    condition.wait(lock, done);
    return absl::OkStatus();
  }
  while (!condition.wait_for(lock, kInterval, done)) {
    lock.unlock();
    const bool stop = check();
    lock.lock();
    if (stop) return absl::CancelledError("a signal ended the wait for the device");
  }
  return absl::OkStatus();
}

}  // namespace lazuli::lazy
