// What device memory is used for, as text: the device's figures, then the plan of a program.
#pragma once

#include <string>

#include "lazy/execution/program.h"

namespace lazuli::lazy {

//   cpu:0: 14.1 MiB in use, 41.6 MiB at most, 27.5 MiB cached, no limit
//   SyncTensorsGraph.2: planned peak 41.4 MiB
//     updated in place     9.2 MiB  16 arrays
//     inputs             196.5 KiB   2 arrays
//     results              4.6 MiB   9 arrays
//     scratch             27.4 MiB  27.4 MiB of it hold values at one time
//     the largest arrays
//        4.5 MiB  f32[128,9216]  updated  fc1.weight
//
// `program` may be null.
std::string MemoryReport(backend::Device device, const Program* program);

}  // namespace lazuli::lazy
