// The ops cumsum and cumulative_arg. cumulative.cc also defines the cumulative reductions that are made of
// other functions: cumprod, logcumsumexp, cummax, cummin.
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

struct CumSumOp {
  int64_t dim;
  LAZULI_OP("cumsum", "aten::cumsum", dim);
  static constexpr OpDoc kDoc{"Running sum along dim; integers and pred sum to s64.", {"x"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct CumulativeArgOp {
  int64_t dim;
  bool largest;
  LAZULI_OP("cumulative_arg", "aten::cummax", dim, largest);
  static constexpr OpDoc kDoc{
      "The position (s64) along dim of the largest or smallest element so far; of equal elements, "
      "the last one. The last NaN counts as both.",
      {"x"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
};

}  // namespace lazuli::lazy
