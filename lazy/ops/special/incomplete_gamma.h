// The incomplete gamma functions, which have a gradient for x alone.
#pragma once

#include "lazy/ops/elementwise/elementwise.h"

namespace lazuli::lazy {

// The share of the integral of t^(a - 1) exp(-t) over t from 0 on that lies below x, or above it.
struct IncompleteGammaOp {
  bool upper;
  LAZULI_OP("igamma", "aten::igamma", upper);
  static constexpr OpDoc kDoc{
      "The regularised incomplete gamma function of a and x, the lower or the upper one.",
      {"a", "x"}};
  static constexpr Saves kSaves = kSaveXY;
  absl::StatusOr<Shape> Infer(const Shape& a, const Shape& x) const {
    return BinaryShape(Accepts::kFloat, lowering::Opcode::kMaximum, a, x);
  }
  lowering::Op Lower(lowering::Builder& b, lowering::Op a, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;  // of x alone
};

}  // namespace lazuli::lazy
