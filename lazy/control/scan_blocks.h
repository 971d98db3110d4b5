// A scan that keeps the carried tensors of every k-th step for its gradient, instead of every step's.
//
// It is a scan over blocks of k steps. For its gradient it keeps the tensors that the first step of
// each block was given. Backward runs the steps of a block again before it differentiates them, so
// each step runs once more, and there is memory for one step of each block and for the steps of one
// block. The values and random numbers are those of the plain scan.
#pragma once

#include <cstdint>

#include "lazy/control/scan.h"

namespace lazuli::lazy {

// Gives the results of RunScan(), in blocks of `every` steps and one shorter block if they do not fill
// the last one. The scan must not be the derivative of another scan.
Tensors RunScanInBlocks(const TracedScan& scan, const ScanTensors& given, int64_t every);

}  // namespace lazuli::lazy
