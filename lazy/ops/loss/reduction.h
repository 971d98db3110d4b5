// Losses of elements, and what `reduction` makes of them.
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

// A loss for each element, or their mean or sum.
Tensor Reduced(const Tensor& loss, Reduction reduction);

}  // namespace lazuli::lazy
