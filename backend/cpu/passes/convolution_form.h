// What a convolution computes, seen as part of training: which decides its layouts and its library
// call.
#pragma once

#include "ir/hlo/module.h"

namespace lazuli::cpu {

enum class ConvolutionForm : uint8_t {
  // Activations in, activations out; also the gradient of the source.
  kForward,
  // Of activations and the gradient of activations: the "feature" that is contracted is the batch.
  kWeightGradient,
};

// Either reading of a convolution is right; the weight gradient's is faster where a large window
// slides over few positions and what the labels call the feature stands where arrays have their
// batch.
ConvolutionForm FormOf(const hlo::Instruction& convolution);

}  // namespace lazuli::cpu
