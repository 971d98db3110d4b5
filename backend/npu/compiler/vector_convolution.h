// Convolutions on the vector unit: those whose groups are too small for the array, which would multiply zeros.
//
// A tap of the window, of one channel of each group, is a stream over the image (window_part.h) times a stream of weights that stands
// still along the positions, added to the sums: as many products at a time as there are lanes. The gradient of such weights is the
// other way round: for each position of the small result one reduction over all of both arrays.
#pragma once

#include "backend/npu/compiler/convolution_kernel.h"

namespace lazuli::npu {

// All groups of a convolution at once: `problem.groups` is not looked at.
struct VectorConvolution {
  ConvProblem problem;
  int64_t groups = 1, batch_groups = 1;
};

// Estimated; negative: there is no such program.
double CyclesOnVectors(const Config& config, const ProductTypes& types, const VectorConvolution& x);
void EmitOnVectors(const VectorConvolution& x, const ProductTypes& types, TileBuilder& builder,
                   const Epilogue& epilogue);

}  // namespace lazuli::npu
