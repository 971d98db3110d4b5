// Layers of networks on the array, one at a time: what npu-layers prints.
//
// A layer is a matrix product of M x K inputs and K x N weights; a convolution is one whose rows
// are its windows. EstimateLayer() counts by closed forms what this machine needs: weights load
// under the products before them, sums stay in the accumulators, and the DRAM works beside the
// array. With compat.scalesim it counts as SCALE-Sim 3.0.0 does (scalesim.h). Words are of one
// byte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "backend/npu/sim/config.h"
#include "backend/npu/sim/energy.h"

namespace lazuli::npu {

// An image of height x width x channels, and `filters` windows over it; a product M x N x K is an
// image of M x K whose rows are the windows.
struct Layer {
  std::string name;
  int64_t ifmap_height = 1, ifmap_width = 1;
  int64_t filter_height = 1, filter_width = 1;
  int64_t channels = 1, filters = 1;
  int64_t stride_height = 1, stride_width = 1;

  static Layer Product(std::string name, int64_t m, int64_t n, int64_t k);
  // Windows that lie in the image.
  int64_t ofmap_height() const { return (ifmap_height - filter_height) / stride_height + 1; }
  int64_t ofmap_width() const { return (ifmap_width - filter_width) / stride_width + 1; }
  int64_t window() const { return filter_height * filter_width * channels; }
  int64_t inputs() const { return ifmap_height * ifmap_width * channels; }
  int64_t weights() const { return window() * filters; }
};

struct LayerReport {
  int64_t m = 0, n = 0, k = 0, macs = 0;
  int64_t cycles = 0;                // of the array, data in its scratchpad
  int64_t cycles_incl_prefetch = 0;  // from the first byte asked of the DRAM to the last one there
  int64_t stall = 0;                 // of these, how many the array waits for the DRAM
  double overall_util = 0;           // MACs of those the array could do in `cycles`, in percent
  double map_eff = 0;                // of the array, how much a pass uses on average, in percent
  double comp_util = 0;              // of those parts, how much of the time they work, in percent
  int64_t sram_i = 0, sram_f = 0,
          sram_o = 0;  // words read, read and written: inputs, weights, results
  int64_t dram_i = 0, dram_f = 0, dram_o = 0;
};

// Layers of a topology file of SCALE-Sim: its first line is a heading, the others are
//   name, M, N, K,                                                                      or
//   name, image height, width, filter height, width, channels, filters, stride[, stride across],
// A name with DP in it is a convolution of each channel by itself: a layer for each. A ratio N:M at
// the end, which says how sparse weights are, is read and changes nothing, as in SCALE-Sim without
// SparsitySupport. An error begins with "FILE:LINE: ".
absl::StatusOr<std::vector<Layer>> ParseTopology(std::string_view text, std::string_view file);

// Dispatches to ScaleSimLayer() with compat.scalesim.
LayerReport EstimateLayer(const Layer& layer, const Config& config);
// What its energy is made of. Each pass over a tile reads and writes a word of the accumulators per
// result.
Activity ActivityOf(const LayerReport& report, const Config& config);

struct LayersFormat {
  std::string columns;   // names between commas; empty: all but the energy
  bool aligned = false;  // a table for people, percentages rounded; else CSV
  bool total = false;    // a last line with the sums
};
// The heading and a line for each layer. Column energy_uj (microjoules) has the name of the energy
// table in its heading.
absl::StatusOr<std::string> LayersText(const std::vector<Layer>& layers, const Config& config,
                                       const LayersFormat& format);

}  // namespace lazuli::npu
