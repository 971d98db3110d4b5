// Matrix multiplications of integers, which wrap: no library has them.
#pragma once

#include <memory>

#include "backend/cpu/runtime/library.h"

namespace lazuli::cpu {

// Null for other element types, and for those narrower than a byte.
std::unique_ptr<LibraryCall> PlanIntegerMatmul(const MatmulSpec& spec);

}  // namespace lazuli::cpu
