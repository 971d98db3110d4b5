// Layers as SCALE-Sim 3.0.0 counts them: its cycles, utilisation, accesses of SRAM and DRAM,
// exactly.
//
// With (Sr, Sc, T) = os (M, N, K), ws (K, N, M), is (K, M, N), a fold is R x C of Sr x Sc, takes
// P = R + C + T - 2 clocks (os) or 2 R + C + T - 2 (ws, is), and folds follow each other: F * P
// clocks. What is reported is the number of the last one, F * P - 1. Its other habits are kept,
// too:
//   - with os, R + C writes of results too many are counted for each fold;
//   - "compute utilisation" takes 2 R + 2 C + T - 3 as the clocks of a fold with ws and is, and
//     R + C + T - 2 with os;
//   - a convolution has ceil((H - F + S) / S) rows of windows, and those that stand out of the
//     image read what lies in it;
//   - a buffer keeps what it read until half of it (50 sets of a hundredth) is full, then forgets
//     all.
// Its memory is that of InterfaceBandwidth CALC: the array never waits for a read.
#pragma once

#include "tools/npu/layers.h"

namespace lazuli::npu {

// Inputs or weights whose single accesses are counted; a larger layer needs compat.dram=false.
inline constexpr int64_t kMostElements = int64_t{1} << 28;

LayerReport ScaleSimLayer(const Layer& layer, const Config& config);

}  // namespace lazuli::npu
