// A scan that keeps the carried tensors of every so many steps for its gradient, not those of each.
//
// It is a scan of blocks of steps. A block keeps what the first of its steps was given, and backward
// goes through the block again before it differentiates the steps: once more each, and with memory for
// all blocks and the steps of one. Values are those of the scan itself, with its random numbers.
#pragma once

#include <cstdint>

#include "lazy/control/scan.h"

namespace lazuli::lazy {

// RunScan() of a scan that is no derivative, in blocks of `every` steps, and the steps that are left.
Tensors RunScanInBlocks(const TracedScan& scan, const ScanTensors& given, int64_t every);

}  // namespace lazuli::lazy
