// Convolutions without im2col: the array streams windows out of the image as it lies.
//
// A tile of the output (some images, some of the positions) needs a part of the input: it is loaded channels innermost, with the
// zeros of padding and of base dilation in it. Element i of a row of A is then the image's element at the window's corner plus an
// offset that only i decides: position in the window and channel. These offsets are a table, window strides are strides of
// mx.mm's nest, and everything is a product of (positions) x (taps * channels) by (taps * channels) x (features).
//
// Taps and channels are cut into chunks where image and weights would not fit; the accumulators keep the sums. SearchConvolution
// chooses tiles, chunks and the order of loops by what they cost.
#pragma once

#include <vector>

#include "backend/npu/compiler/product.h"

namespace lazuli::npu {

// One group of a convolution. Spatial dims are those of `window`; reversal is in the view of the kernel.
struct ConvProblem {
  View x;  // [batch, spatial..., channels]
  View w;  // [window..., channels of a group, features]
  View y;  // [batch, positions..., features]
  hlo::Window window;
  // Groups of channels that are worked on together: features and channels of other groups meet zeros.
  int64_t groups = 1;

  std::size_t spatial() const { return window.size(); }
  int64_t channels() const { return x.dims.back(); }
  int64_t features() const { return y.dims.back(); }
};

struct ConvTiles {
  Dims tile;     // of batch and positions
  int64_t taps;  // of the window's outermost dimension
  int64_t channels, features;
  bool features_outer = false;
  double cycles = 0;  // estimated
};
ConvTiles SearchConvolution(const Config& config, const ProductTypes& types,
                            const ConvProblem& problem);

void EmitConvolution(const ConvProblem& problem, const ProductTypes& types, const ConvTiles& tiles,
                     TileBuilder& builder, const Epilogue& epilogue);

// Bytes that cross the DRAM for a box of a view: runs of whole bursts.
double DramTraffic(const Config& config, const View& view, const Dims& extents);

// How an input tile lies in the scratchpad: elements between neighbours along batch, spatial dims and
// channels, and the size.
struct ImageShape {
  Dims extents, strides;
  int64_t elements() const;
};
ImageShape ImageOf(const ConvProblem& problem, const ConvTiles& tiles);

}  // namespace lazuli::npu
