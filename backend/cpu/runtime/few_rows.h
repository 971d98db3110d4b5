// Products with few rows, or few columns: what inference with small batches multiplies.
//
// Their time is that of reading the large factor once, so it is read where it lies, in long runs, and
// nothing is packed. Measured against oneDNN by `./lz bench kernels`.
#pragma once

#include <memory>

#include "backend/cpu/runtime/library.h"

namespace lazuli::cpu {

// Null where another call is faster, and for dtypes other than f32 and f64. Values do not depend on
// the number of threads.
std::unique_ptr<LibraryCall> PlanFewRows(const MatmulSpec& spec, int threads);

}  // namespace lazuli::cpu
