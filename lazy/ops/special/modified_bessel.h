// The modified Bessel functions of the first kind, i0 and i1, which have gradients. The others are in
// bessel.h.
#pragma once

#include "lazy/ops/elementwise/elementwise.h"

namespace lazuli::lazy {

// The modified Bessel function of the first kind, of order 0 or 1; scaled: times exp(-|x|).
struct BesselIOp {
  int64_t order;
  bool scaled;
  LAZULI_OP("i0", "aten::i0", order, scaled);
  static constexpr OpDoc kDoc{"The modified Bessel function of the first kind of each element.",
                              {"x"}};
  static constexpr Saves kSaves{.inputs = 1, .outputs = 1};
  absl::StatusOr<Shape> Infer(const Shape& x) const {
    return UnaryShape(Accepts::kFloat, lowering::Opcode::kErf, x);
  }
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

}  // namespace lazuli::lazy
