// What of a module the NPU is to run: everything that it can, that nobody denied, and that pays.
//
// The mechanism is backend/runtime/placement.h; this is the NPU's part of it beside the compiler's view
// of instructions (compiler/supported.h), a rough model of time. The model needs to be right about factors, not percents:
// a region has peak rates of the machine, half of which it is assumed to reach, the DRAM's bandwidth,
// a launch, and a transfer for each array that the host makes for it or takes from it. The host has
// host.gflops and host.memory_gbs, and each array that it takes from the DRAM is a transfer.
#pragma once

#include "backend/npu/sim/config.h"
#include "backend/runtime/partition.h"
#include "backend/runtime/placement.h"

namespace lazuli::npu {

// Refuses a program that is too small for a launch.
void RefuseTiny(const Config& config, Placement& placement);
// Refuses regions that the host runs faster, and whether there were any.
bool RefuseUnprofitable(const Config& config, const Partition& partition, Placement& placement);

}  // namespace lazuli::npu
