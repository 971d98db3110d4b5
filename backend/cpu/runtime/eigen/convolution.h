// Convolutions of every form, for what the library has none: f64, complex numbers and integers,
// windows reversed or dilated in any way, groups of features or of the batch.
#pragma once

#include <memory>

#include "backend/cpu/runtime/library.h"
#include "ir/hlo/attrs.h"
#include "ir/support/attrs.h"

namespace lazuli::cpu {

// Arrays by role, with strides in elements: input and result {batch, feature, spatial...}, kernel
// {output feature, input feature of its group, spatial...}.
struct WindowedConvolution {
  DType dtype = DType::kF32;
  int64_t feature_groups = 1, batch_groups = 1;
  hlo::Window window;
  Dims input, kernel, result;
  Dims input_strides, kernel_strides, result_strides;
  bool operator==(const WindowedConvolution&) const = default;
  LAZULI_ATTRS(dtype, feature_groups, batch_groups, window, input, kernel, result, input_strides,
               kernel_strides, result_strides);
};

// Null for element types that it does not multiply: floats narrower than f32 and integers narrower
// than a byte. No array may be empty. At most `threads` run it.
std::shared_ptr<const LibraryCall> PlanEigenConvolution(const WindowedConvolution& spec,
                                                        int threads);

}  // namespace lazuli::cpu
