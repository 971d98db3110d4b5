// What an HLO convolution is to the libraries that compute it.
#pragma once

#include <optional>

#include "backend/cpu/runtime/eigen/convolution.h"
#include "backend/cpu/runtime/library.h"
#include "ir/hlo/module.h"

namespace lazuli::cpu {

// The convolution as one of oneDNN's three: forward, or one of the two gradients in the forms that
// differentiation writes.
//
//   backward data:     convolution(dy, w), rhs_reversal on every dimension,
//                      lhs_dilate = stride of the forward convolution
//   backward weights:  convolution(x, dy), the batch as contracted feature,
//                      a window larger than the result, rhs_dilate = stride
//
// Groups of features in the forward convolution are groups of the batch in the gradient of its
// weights. nullopt for what is none of the three: other dtypes than f32, groups of the batch
// elsewhere, reversal of some dimensions only, empty arrays.
std::optional<ConvolutionSpec> MatchConvolution(const hlo::Instruction& convolution);

// The convolution as it is. nullopt if an array is empty or the element types differ.
std::optional<WindowedConvolution> AnyConvolution(const hlo::Instruction& convolution);

}  // namespace lazuli::cpu
