// What functions that are made of other elementwise functions are written with: numbers beside a tensor,
// and two operands in their common dtype.
#pragma once

#include <limits>

#include "lazy/ops/core/default_type.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/elementwise/elementwise.h"

namespace lazuli::lazy {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline Value Number0(const Tensor& x) { return Constant(0, x.dtype()); }
inline Value Number1(const Tensor& x) { return Constant(1, x.dtype()); }
inline Value Infinite(const Tensor& x, double sign = 1) {
  return Constant(sign * kInfinity, x.dtype());
}

// The operands in their common dtype, of floats; a number as rank 0.
inline std::pair<Tensor, Tensor> Together(std::string_view op, const Operand& in_x,
                                          const Operand& in_y) {
  const backend::Device device = (in_x.tensor() != nullptr ? in_x : in_y).tensor()->device();
  const auto tensor = [&](const Operand& o) {
    return o.tensor() != nullptr ? *o.tensor() : Full({}, o.number(), device);
  };
  const Tensor x = tensor(in_x), y = tensor(in_y);
  const absl::StatusOr<DType> common = CommonType(x.shape(), y.shape());
  if (!common.ok()) ThrowRecordError(op, common.status());
  const DType dtype = IsFloat(*common) || IsComplex(*common) ? *common : DefaultFloat();
  return {To(x, dtype), To(y, dtype)};
}

// The dtype of what is computed from both, with the dims of the one that has more.
inline Shape Together(std::string_view op, const Shape& x, const Shape& y) {
  const absl::StatusOr<DType> common = CommonType(x, y);
  if (!common.ok()) ThrowRecordError(op, common.status());
  return Shape(*common, (x.rank() < y.rank() ? y : x).dims());
}

}  // namespace lazuli::lazy
