// Moves the loads of each stage in front of the stage before, so that they run beside it.
//
// Queues run ahead of each other only as far as they are deep: what a unit shall do early must stand
// early in the program. A stage is what a kernel does to one block. Its loads stay where they are if
// they read what the stage before stores, or touch buffers that it uses; everything keeps its order
// otherwise, so a program means the same as before. Buffers live longer: where then not all fits the
// scratchpad, the program is allocated as it was.
#pragma once

#include "backend/npu/compiler/tile_ir.h"

namespace lazuli::npu {

void PrefetchLoads(TileProgram& program);

}  // namespace lazuli::npu
