// What an elementwise op makes of the dtypes of its operands.
#pragma once

#include <cstdint>

#include "ir/types/dtype.h"

namespace lazuli::lazy {

enum class Accepts : uint8_t {
  kFloat,    // it computes in floats: integers are taken as f32
  kReal,     // it computes in the common dtype
  kWhole,    // likewise, and integers are their own result (floor)
  kInteger,  // integers alone (shifts)
  kBits,     // integers and pred
  kTruth,    // what is not 0 is true; the result is pred
};

// The dtype in which an op computes with operands of this common dtype.
inline DType ComputeType(Accepts accepts, DType dtype) {
  if (accepts == Accepts::kTruth) return DType::kPred;
  return accepts == Accepts::kFloat && !IsFloat(dtype) && !IsComplex(dtype) ? DType::kF32 : dtype;
}

// Floats of 16 bits: what arithmetic rounds to only at its end.
inline bool IsNarrow(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

}  // namespace lazuli::lazy
