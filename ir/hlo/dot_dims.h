// The dims of a dot's operands in groups: batch, free (of one operand alone) and contracting.
#pragma once

#include "ir/types/shape.h"

namespace lazuli::hlo {

// Those that are neither batch nor contracting, in rising order.
Dims FreeDims(const Shape& shape, const Dims& batch, const Dims& contracting);
// Elements along these dims.
int64_t SizeOf(const Shape& shape, const Dims& dims);
Dims Concatenated(const Dims& a, const Dims& b, const Dims& c);

}  // namespace lazuli::hlo
