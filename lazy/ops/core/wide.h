// What sums, and what is made of sums, are computed with: f32 for floats of 16 bits and less, whose
// squares, sums and counts soon pass their range; every other type as it is.
#pragma once

#include "lazy/ops/core/functions.h"

namespace lazuli::lazy {

// x in hlo::AccumulationType of its type: x itself if it has it.
Tensor Wide(const Tensor& x);
lowering::Op Wide(lowering::Op x);

// f of the wide x, in x's own type.
template <class F>
Tensor InWide(const Tensor& x, F&& f) {
  return To(f(Wide(x)), x.dtype());
}

}  // namespace lazuli::lazy
