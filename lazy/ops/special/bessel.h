// Bessel functions that PyTorch gives no gradient: J, Y and K of orders 0 and 1, and Airy's Ai.
#pragma once

#include "lazy/ops/elementwise/elementwise.h"

namespace lazuli::lazy {

enum class Bessel : uint8_t { kJ0, kJ1, kY0, kY1, kK0, kK1, kScaledK0, kScaledK1, kAiry };

// A Bessel function of the first (J) or second (Y) kind, a modified one of the second kind (K; scaled: times exp(x)), or
// Airy's Ai.
struct BesselOp {
  Bessel function;
  LAZULI_OP("bessel", "aten::special_bessel", function);
  static constexpr OpDoc kDoc{
      "J0, J1, Y0, Y1, K0, K1, K0 times exp(x), K1 times exp(x), or Ai of each element; the "
      "function is given by its number.",
      {"x"}};
  absl::StatusOr<Shape> Infer(const Shape& x) const {
    return UnaryShape(Accepts::kFloat, lowering::Opcode::kErf, x);
  }
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
};

}  // namespace lazuli::lazy
