// Dims as users give them and as ops take them: positions that count from the end, a size for each
// dim, tensors of rank 0 that functions along a dim take as a row.
#pragma once

#include <algorithm>
#include <string_view>

#include "lazy/ops/core/functions.h"

namespace lazuli::lazy {

// The place of dim i in Dims.
inline std::size_t At(int64_t i) { return static_cast<std::size_t>(i); }
inline Dims DimsOf(const Shape& x) { return Dims(x.dims().begin(), x.dims().end()); }
// The dims of x with another size of one.
inline Dims Resized(const Shape& x, int64_t dim, int64_t size) {
  Dims dims = DimsOf(x);
  dims[At(dim)] = size;
  return dims;
}

// How many elements an array with these dims has.
inline int64_t Count(absl::Span<const int64_t> dims) {
  int64_t count = 1;
  for (int64_t n : dims) count *= n;
  return count;
}

// A position that counts from the end if it is negative, within [low, n].
inline int64_t Bounded(int64_t position, int64_t low, int64_t n) {
  return std::clamp(position < 0 ? position + n : position, low, std::max(low, n));
}

// Throws unless a tensor may have these dims and the dtype.
void CheckShape(std::string_view op, absl::Span<const int64_t> dims, DType dtype);

// f(x) along a dim, which of rank 0 is its only one.
template <class F>
Tensor AlongDim(const Tensor& x, F&& f) {
  return x.rank() == 0 ? Reshape(f(Reshape(x, {1})), {}) : f(x);
}

}  // namespace lazuli::lazy
