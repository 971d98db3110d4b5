// Sorting along a dim. sort.cc also defines topk, argsort and msort.
#pragma once

#include <array>

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

struct SortOp {
  int64_t dim;
  bool descending;
  LAZULI_OP("sort", "aten::sort", dim, descending);
  static constexpr OpDoc kDoc{
      "The elements sorted along dim, and their original positions (s64). Equal elements keep "
      "their order; NaN is the largest.",
      {"x"}};
  static constexpr Saves kSaves{.outputs = 2};
  std::array<lowering::Op, 2> Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, absl::Span<const Tensor> dys) const;
};

}  // namespace lazuli::lazy
