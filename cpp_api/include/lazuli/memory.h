// Memory of devices: what is in use, what a program plans, and a limit.
#pragma once

#include <cstdint>
#include <string>

#include "lazuli/device.h"
#include "lazuli/export.h"

namespace lazuli {

struct MemoryStats {
  std::int64_t bytes_in_use = 0;
  std::int64_t peak_bytes = 0;    // the most that was in use at one time
  std::int64_t cached_bytes = 0;  // freed and kept for reuse
  std::int64_t limit_bytes = 0;   // 0: none
};
LAZULI_API MemoryStats memory_stats(const Device& device = Device());

// Arrays and scratch of a device may take this much together; LAZULI_MEMORY_LIMIT sets it from
// outside. A program that needs more is refused by sync, before it runs: what was recorded stays
// pending, so that one can drop a tensor and sync again. 0 = no limit.
LAZULI_API void set_memory_limit(std::int64_t bytes);

// The device's figures, then the plan of the program that this thread synced last, as text.
LAZULI_API std::string memory_report(const Device& device = Device());

namespace debug {

// What a run of the program that this thread synced last occupies, in bytes.
struct MemoryPlan {
  std::int64_t peak = 0;       // arguments + outputs + scratch
  std::int64_t updated = 0;    // arguments that results update: weights, state of optimisers
  std::int64_t inputs = 0;     // other arguments
  std::int64_t outputs = 0;    // results that cannot take an argument's memory over
  std::int64_t temp = 0;       // scratch
  std::int64_t live_temp = 0;  // the part of it that holds values at one time, at most
};
LAZULI_API MemoryPlan last_memory_plan();

}  // namespace debug
}  // namespace lazuli
