// Permutations of dimensions.
#pragma once

#include "absl/types/span.h"

#include "ir/types/shape.h"

namespace lazuli::ir {

// Where each dimension went: Inverse(p)[p[i]] == i.
inline Dims Inverse(absl::Span<const int64_t> permutation) {
  Dims inverse(permutation.size(), 0);
  for (std::size_t i = 0; i < permutation.size(); ++i)
    inverse[static_cast<std::size_t>(permutation[i])] = static_cast<int64_t>(i);
  return inverse;
}

}  // namespace lazuli::ir
