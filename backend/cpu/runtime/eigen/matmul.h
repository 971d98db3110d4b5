// Matrix multiplication by Eigen: all of it without oneDNN, f64 with it.
#pragma once

#include "backend/cpu/runtime/library.h"

namespace lazuli::cpu {

// Null for dtypes other than f32 and f64.
std::unique_ptr<LibraryCall> PlanEigenMatmul(const MatmulSpec& spec);

}  // namespace lazuli::cpu
