// Matrix products c[m, n] = a[m, k] b[k, n] in blocks.
//
// A block of a (mb x kb) and one of b (kb x nb) lie in the scratchpad; each R x C tile of b goes into
// the array and all mb rows of a stream past it; sums of all k stay in the accumulators. What of
// these blocks stays while others change is what the order of the loops says, and SearchDot chooses
// both by what they cost.
#pragma once

#include <string>

#include "backend/npu/compiler/product.h"

namespace lazuli::npu {

struct DotBlocks {
  int64_t mb, nb, kb;
  bool rows_outer = true;  // blocks of rows in the outer loop, of columns in the inner
  double cycles = 0;       // estimated
};
DotBlocks SearchDot(const Config& config, const ProductTypes& types, int64_t m, int64_t n,
                    int64_t k);

// Views of rank 2; the result's elements are those that leave the accumulators.
void EmitDot(const View& a, const View& b, const View& c, const ProductTypes& types,
             const DotBlocks& blocks, TileBuilder& builder, const Epilogue& epilogue);

}  // namespace lazuli::npu
