// A computation of 16-bit floats in f32: what is between its parameters and results rounds no more.
//
//   body { x = bf16[4] parameter(0)  y = bf16[4] multiply(x, x)  ROOT z = bf16[4] add(y, x) }
//   =>  copy { x = bf16[4] parameter(0)  w = f32[4] convert(x)  y = f32[4] multiply(w, w)
//              z = f32[4] add(y, w)  ROOT r = bf16[4] convert(z) }
//
// Conversions to 16 bits and back inside go, too. A kernel that computes in f32 is defined by such
// a copy.
#pragma once

#include "ir/hlo/module.h"

namespace lazuli::cpu {

inline bool IsHalf(DType dtype) { return dtype == DType::kBF16 || dtype == DType::kF16; }

// In the module of `body`. Null where there is nothing to widen, or where an instruction means
// something else in f32, as one that reads bits.
hlo::Computation* WidenedCopy(const hlo::Computation& body);

}  // namespace lazuli::cpu
