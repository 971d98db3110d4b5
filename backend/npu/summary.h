// What the NPU did, for people: a line for each device that ran something.
#pragma once

#include <string>

#include "backend/npu/npu_executable.h"

namespace lazuli::npu {

// Multiplications of the array, of those that the counted cycles had room for: 0 to 1.
double ArrayUtilisation(const Config& config, const Counters& counters);

// "npu:0 (npu1-edge): 300 programs in 41.2 ms of simulated time (runs 38 ms, launches 1.5 ms,
// transfers 1.7 ms), array 23.1 % busy, 12.3 mJ (horowitz45)". Then what ran on the host, or
// "nothing". Empty if nothing ran.
std::string SummaryText(const NpuDevices& devices);

}  // namespace lazuli::npu
