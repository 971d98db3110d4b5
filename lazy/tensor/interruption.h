// Waiting for the device, which a signal may end.
//
// A language that the library is embedded in handles signals itself, where its code runs, and a
// wait is none of its code. It installs a check, which every wait for a run asks from time to time.
// The run that was waited for goes on.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace lazuli::lazy {

// Whether the calling thread should stop waiting. It holds no lock meanwhile.
using InterruptCheck = bool (*)();
// Null to remove it.
void SetInterruptCheck(InterruptCheck check);

// Told of waits that take long: how long it is by now. Called after `after`, then after twice that
// time and so on, without a lock.
using WaitNotice = void (*)(std::chrono::milliseconds waited);
// Null to remove it.
void SetWaitNotice(WaitNotice notice, std::chrono::milliseconds after);

// condition.wait(lock, done), or Cancelled once the check says so.
absl::Status InterruptibleWait(std::condition_variable& condition,
                               std::unique_lock<std::mutex>& lock, absl::FunctionRef<bool()> done);

}  // namespace lazuli::lazy
