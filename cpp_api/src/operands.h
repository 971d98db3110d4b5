// Arguments of public ops as operands of the library's own.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "cpp_api/src/facade.h"
#include "lazy/ops/functions.h"

namespace lazuli {

inline Borrowed In(const Tensor& tensor, std::string_view op) {
  if (!tensor.defined())
    throw lazy::StatusError(ir::InvalidArgument(op, ": operand 0 is an undefined tensor"));
  return TensorAccess::Borrow(tensor);
}

inline lazy::Tensors In(const std::vector<Tensor>& tensors, std::string_view op) {
  lazy::Tensors result;
  result.reserve(tensors.size());
  for (const Tensor& t : tensors) result.push_back(In(t, op));
  return result;
}

// What composites of floats compute with: integers are taken as f32, as float functions take them.
inline lazy::Tensor InFloat(const Tensor& tensor, std::string_view op) {
  return lazy::Floating(In(tensor, op));
}

// A number beside a tensor, as arithmetic takes it: the slot of the Scalar.
inline ir::Value NumberBeside(const Scalar& scalar, const lazy::Tensor& tensor) {
  return TensorAccess::Slot(scalar, TensorAccess::ToNumber(scalar).TypeBeside(tensor.dtype()));
}

inline lazy::Pair ToPair(std::pair<std::int64_t, std::int64_t> p) { return {p.first, p.second}; }

inline lazy::Reduction ToLazy(nn::Reduction reduction) {
  static_assert(static_cast<int>(nn::Reduction::kSum) == static_cast<int>(lazy::Reduction::kSum));
  return static_cast<lazy::Reduction>(reduction);
}

}  // namespace lazuli
