// Checkpoints: what a function saves for backward is computed again there instead.
#pragma once

#include <functional>

#include "lazy/tensor/tensor.h"

namespace lazuli::lazy {

// The results of `function` of these tensors. Its ops save nothing; the first that needs what it
// would have saved has the function run again, on the elements that the inputs had, behind a barrier
// that keeps the compiler from taking the forward pass' values and from running before the gradient
// is there. With `keep_random` random numbers are the same again. A function that saves another
// number of tensors the second time is FailedPrecondition.
using CheckpointFunction = std::function<Tensors(absl::Span<const Tensor> inputs)>;
Tensors Checkpoint(const CheckpointFunction& function, absl::Span<const Tensor> inputs,
                   bool keep_random);

}  // namespace lazuli::lazy
