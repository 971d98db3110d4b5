// MatchConvolution: which library call an HLO convolution is - forward, or one of the two gradients
// in the forms that differentiation writes.
//
//   backward data:     convolution(dy, w), rhs_reversal on every dimension,
//                      lhs_dilate = stride of the forward convolution
//   backward weights:  convolution(x, dy), the batch as contracted feature, a window larger than
//     the result, rhs_dilate = stride
#pragma once

#include <optional>

#include "backend/cpu/runtime/library.h"
#include "ir/hlo/module.h"

namespace lazuli::backend {

// nullopt for what no library call computes: batch groups, other dtypes, reversal of some
// dimensions only, empty arrays.
std::optional<ConvolutionSpec> MatchConvolution(const hlo::Instruction& convolution);

}  // namespace lazuli::backend
