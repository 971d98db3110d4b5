// Keeps small temporaries in the scratchpad: what one kernel stores and another one loads need not go
// through DRAM, whose latency is most of what a small array costs.
//
// Stores to and loads from such an array become copies inside the scratchpad, and the array a buffer,
// which lives from the first of them to the last. Only arrays whose accesses all lie between two
// branches: what a loop's next round finds is in DRAM. At any time such arrays take at most an eighth
// of the scratchpad; where kernels then do not fit beside them, the program is allocated without.
#pragma once

#include "backend/npu/compiler/tile_ir.h"
#include "backend/npu/sim/config.h"

namespace lazuli::npu {

// Whether there were any.
bool KeepInScratchpad(const Config& config, TileProgram& program);

}  // namespace lazuli::npu
