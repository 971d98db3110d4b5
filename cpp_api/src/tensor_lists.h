// Lists of public tensors as lists of lazy ones, and back. Undefined tensors stay undefined.
#pragma once

#include <utility>
#include <vector>

#include "absl/types/span.h"

#include "cpp_api/src/facade.h"

namespace lazuli {

inline lazy::Tensors Unwrapped(absl::Span<const Tensor> tensors) {
  lazy::Tensors unwrapped;
  unwrapped.reserve(tensors.size());
  for (const Tensor& tensor : tensors) unwrapped.push_back(TensorAccess::Unwrap(tensor));
  return unwrapped;
}
inline std::vector<Tensor> Wrapped(absl::Span<const lazy::Tensor> tensors) {
  std::vector<Tensor> wrapped;
  wrapped.reserve(tensors.size());
  for (const lazy::Tensor& tensor : tensors) wrapped.push_back(TensorAccess::Wrap(tensor));
  return wrapped;
}
inline std::vector<Tensor> Wrapped(lazy::Tensors&& tensors) {
  std::vector<Tensor> wrapped;
  wrapped.reserve(tensors.size());
  for (lazy::Tensor& tensor : tensors) wrapped.push_back(TensorAccess::Wrap(std::move(tensor)));
  return wrapped;
}

}  // namespace lazuli
