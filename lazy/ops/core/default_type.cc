#include "lazy/ops/core/default_type.h"

#include <atomic>

namespace lazuli::lazy {
namespace {
std::atomic<DType> default_float = DType::kF32;
}  // namespace

DType DefaultFloat() { return default_float.load(std::memory_order_relaxed); }
DType DefaultComplex() { return DefaultFloat() == DType::kF64 ? DType::kC128 : DType::kC64; }
void SetDefaultFloat(DType dtype) { default_float.store(dtype, std::memory_order_relaxed); }

}  // namespace lazuli::lazy
