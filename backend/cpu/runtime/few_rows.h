// Products with few rows, or few columns: what inference with small batches multiplies.
//
// Their time is that of reading the large factor once, so it is read where it lies, in long runs, and
// nothing is packed; narrow factors are widened as they are read. Measured against oneDNN by
// `./lz bench kernels`.
#pragma once

#include <memory>

#include "backend/cpu/runtime/library.h"

namespace lazuli::cpu {

// Up to here the loops beat oneDNN 2.6, whatever the layout (Zen 4, 512 to 4096 terms and columns,
// nothing packed): with one row by 2 to 4.
inline constexpr int64_t kMostRows = 4;

// The dtypes of factors that are widened as they are read, beside f32.
constexpr bool IsReadNarrow(DType dtype) {
  return dtype == DType::kBF16 || dtype == DType::kF16 || dtype == DType::kS8 ||
         dtype == DType::kU8;
}

// Whether a library call for products of a dtype may take a factor of another one.
constexpr bool TakesFactor(DType product, DType factor) {
  return factor == product || (product == DType::kF32 && IsReadNarrow(factor));
}

// Null where another call is faster, and for dtypes other than f32 with such factors and f64. Values do not depend on
// the number of threads.
std::unique_ptr<LibraryCall> PlanFewRows(const MatmulSpec& spec, int threads);

}  // namespace lazuli::cpu
