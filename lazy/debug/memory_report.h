// What device memory is used for, as data and as text: the device's figures, then the plans of
// programs.
#pragma once

#include <string>
#include <vector>

#include "lazy/execution/cached_program.h"
#include "lazy/tensor/live_tensors.h"

namespace lazuli::lazy {

// The programs in the cache that run on the device, as on all of its platform, that with the largest
// planned peak first.
std::vector<CachedProgramPtr> ProgramsByMemory(backend::Device device);

// One array of a program: a leaf, a result, or scratch while it holds values.
struct PlannedArray {
  std::string role;   // "updated", "input", "result", "scratch"
  std::string name;   // "conv1.weight", or the line that recorded it; of scratch what writes it
  std::string shape;  // empty of scratch
  int64_t bytes = 0;
  int64_t first = 0, last = 0;  // steps of the run during which it is there
  std::string op;               // of scratch: "aten__mm"
  std::string donation;  // of a leaf whose memory a result might have: whether it does, or why not
};
// Of a program, the largest first.
std::vector<PlannedArray> PlannedArrays(const CachedProgram& program);

// Bytes that hold values in each step of a run, and what the steps are called. Where the device
// does not know, one step without a name.
struct MemoryTimeline {
  std::vector<std::string> steps;
  std::vector<int64_t> bytes;
  std::size_t peak() const;  // the first step with the most
};
MemoryTimeline TimelineOf(const CachedProgram& program);

//   SyncTensorsGraph.2: planned peak 41.4 MiB
//     updated in place     9.2 MiB  16 arrays
//     inputs             196.5 KiB   2 arrays
//     results              4.6 MiB   9 arrays
//     scratch             27.4 MiB  27.4 MiB of it hold values at one time
//     the largest arrays
//        4.5 MiB  f32[128,9216]  updated  fc1.weight
//     scratch of step 12 of 40 (fusion.7), the most
//       18.0 MiB  dot.3  aten__mm  train.cc:7
//     not taken over
//        4.5 MiB  f32[128,9216]  fc1.weight: a tensor or another graph holds its elements, too
std::string ProgramMemoryText(const CachedProgram& program);

// The device's figures, its programs by their peaks, and the plan of the first of them:
//
//   cpu:0: 14.1 MiB in use, 41.6 MiB at most, 27.5 MiB cached, no limit
//   programs by planned peak
//      41.4 MiB     120 runs  SyncTensorsGraph.2 (train.cc:41)
std::string MemoryReport(backend::Device device);

// "   64.0 KiB      4 of f32[64,64]  train.cc:12", a line for each.
std::string LiveTensorsText(const std::vector<LiveTensors>& tensors);

}  // namespace lazuli::lazy
