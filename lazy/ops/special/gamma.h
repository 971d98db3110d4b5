// The op lgamma. gamma.cc also defines what is made of it, or beside it: digamma, polygamma, mvlgamma.
#pragma once

#include "lazy/ops/elementwise/elementwise.h"

namespace lazuli::lazy {

// Logarithm of |gamma|, by the approximation of Lanczos (1964).
struct LgammaOp {
  LAZULI_OP("lgamma", "aten::lgamma");
  static constexpr OpDoc kDoc{"Logarithm of the absolute value of the gamma function.", {"x"}};
  static constexpr Saves kSaves = kSaveX;
  absl::StatusOr<Shape> Infer(const Shape& x) const {
    return UnaryShape(Accepts::kFloat, lowering::Opcode::kErf, x);
  }
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

}  // namespace lazuli::lazy
