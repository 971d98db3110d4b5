// Gives the buffers of a tile program their places in the scratchpad and in the accumulators.
//
// A buffer lives from the first operation that names it to the last, in the order of the program. The search for room begins
// behind the buffer that was placed last and wraps around: so room is taken again as late as possible, and what runs ahead (the
// next tiles' loads) finds buffers that nobody waits for. Double buffering is not a decision but what is left when a tile needs
// less than half of the memory. When nothing fits from there, the lowest place that does is taken.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

#include "backend/npu/compiler/tile_ir.h"
#include "backend/npu/sim/config.h"

namespace lazuli::npu {

struct Occupancy {
  int64_t spm_bytes = 0, acc_rows = 0;  // the most that lived at one time
};

// What did not fit, and where.
struct Shortage {
  Space space = Space::kNone;
  int operation = -1;
  int64_t bytes = 0;  // of accumulators: rows
};

// SPM_OVERFLOW or ACC_OVERFLOW (ResourceExhausted) has a chart of what lives where it does not fit.
absl::Status Allocate(const Config& config, TileProgram& program, Occupancy* occupancy = nullptr,
                      Shortage* shortage = nullptr);

}  // namespace lazuli::npu
