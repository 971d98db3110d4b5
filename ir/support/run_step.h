// Which step of a program its device is at, for whoever waits for it.
#pragma once

#include <atomic>
#include <cstdint>

#include "ir/support/thread_slot.h"

namespace lazuli::ir {

// Where the thread of a device puts the number of the step that it begins; null on other threads.
inline const ThreadSlot<std::atomic<int32_t>>& StepOfRun() {
  static const auto* const slot = new ThreadSlot<std::atomic<int32_t>>;
  return *slot;
}

}  // namespace lazuli::ir
