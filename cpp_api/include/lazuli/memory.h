// Memory of devices: what is in use, what a program plans, and a limit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

// As text: the device's figures, the programs of its platform by their planned peaks, and the plan of
// the one that needs the most, with its largest arrays, the scratch at its peak, and the leaves whose memory no
// result took over.
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

// A program that the process keeps, and what a run of it occupies.
struct ProgramMemory {
  std::string name;    // "SyncTensorsGraph.2"
  std::string source;  // of the call that synced it first: "train.cc:41"
  std::int64_t runs = 0;
  MemoryPlan plan;
};
// Those of the device, that with the largest peak first.
LAZULI_API std::vector<ProgramMemory> memory_plans(const Device& device = Device());

// An array of a program: a leaf, a result, or scratch while it holds values.
struct PlannedArray {
  std::string role;   // "updated", "input", "result", "scratch"
  std::string name;   // "conv1.weight", or the line that recorded it; of scratch what writes it
  std::string shape;  // "f32[128,9216]"; empty of scratch
  std::int64_t bytes = 0;
  std::int64_t first = 0, last = 0;  // steps of a run during which it is there
  std::string op;                    // of scratch: "aten__mm"
  // Of a leaf whose memory a result might take over: "taken over", or why it was not in the last
  // run; else empty.
  std::string donation;
};
// Of the device's program of this name, the largest first; "" is the program with the largest peak.
// Throws Error(kNotFound) for a name that no program has.
LAZULI_API std::vector<PlannedArray> memory_arrays(std::string_view program = "",
                                                   const Device& device = Device());
// Bytes that hold values in each step of a run of it.
LAZULI_API std::vector<std::int64_t> memory_timeline(std::string_view program = "",
                                                     const Device& device = Device());

// Tensors of one line that are alive.
struct LiveTensors {
  std::string source;  // that made them: "train.cc:41"
  std::string shape;   // "f32[64,64]"
  std::string device;
  std::int64_t count = 0;
  std::int64_t bytes = 0;  // of all of them; views have none of their own
};
// A mark of this moment. From the first one on tensors are known until they go; those that were
// there before are not.
LAZULI_API std::int64_t memory_mark();
// What was made after the mark and is alive now, the largest sum first: what a step that should
// keep nothing leaves behind. 0 is the first mark.
LAZULI_API std::vector<LiveTensors> live_tensors(std::int64_t since = 0);
LAZULI_API std::string live_tensors_text(std::int64_t since = 0);

}  // namespace debug
}  // namespace lazuli
