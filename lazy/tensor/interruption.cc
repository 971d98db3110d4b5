#include "lazy/tensor/interruption.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "ir/support/status.h"

namespace lazuli::lazy {
namespace {

// What somebody who presses Ctrl-C does not notice, and what costs nothing to a wait of seconds.
constexpr std::chrono::milliseconds kInterval{50};

std::atomic<InterruptCheck> installed{nullptr};
std::atomic<WaitNotice> installed_notice{nullptr};
std::atomic<int64_t> notice_after_ms{0};

}  // namespace

void SetInterruptCheck(InterruptCheck check) { installed = check; }

void SetWaitNotice(WaitNotice notice, std::chrono::milliseconds after) {
  notice_after_ms = after.count();
  installed_notice = notice;
}

absl::Status InterruptibleWait(std::condition_variable& condition,
                               std::unique_lock<std::mutex>& lock, absl::FunctionRef<bool()> done) {
  const InterruptCheck check = installed;
  const WaitNotice notice = installed_notice;
  if (check == nullptr && notice == nullptr) {
    condition.wait(lock, done);
    return absl::OkStatus();
  }
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  std::chrono::milliseconds next(notice_after_ms);
  while (!condition.wait_for(lock, kInterval, done)) {
    lock.unlock();
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
    if (notice != nullptr && waited >= next) {
      notice(waited);
      next = std::max(2 * next, waited);
    }
    const bool stop = check != nullptr && check();
    lock.lock();
    if (stop) return absl::CancelledError("a signal ended the wait for the device");
  }
  return absl::OkStatus();
}

}  // namespace lazuli::lazy
