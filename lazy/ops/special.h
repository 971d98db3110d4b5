// Ops of special functions that PyTorch gives no gradient, or one for an operand alone: Bessel functions, orthogonal
// polynomials, incomplete gamma functions.
#pragma once

#include "lazy/ops/elementwise.h"

namespace lazuli::lazy {

enum class Bessel : uint8_t { kJ0, kJ1, kY0, kY1, kK0, kK1, kScaledK0, kScaledK1, kAiry };

// A Bessel function of the first (J) or second (Y) kind, a modified one of the second kind (K; scaled: times exp(x)), or
// Airy's Ai.
struct BesselOp {
  Bessel function;
  LAZULI_OP("bessel", "aten::special_bessel", function);
  static constexpr OpDoc kDoc{
      "J0, J1, Y0, Y1, K0, K1, K0 and K1 times exp(x), or Ai of each element, by number of "
      "function.",
      {"x"}};
  absl::StatusOr<Shape> Infer(const Shape& x) const {
    return UnaryShape(Accepts::kFloat, lowering::Opcode::kErf, x);
  }
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
};

// T, U, V and W are Chebyshev's of the four kinds.
enum class Polynomial : uint8_t { kT, kU, kV, kW, kH, kHe, kLaguerre, kLegendre };

// A loop over the degree as long as the largest one: what comes before the degree of an element is that element's.
struct PolynomialOp {
  Polynomial kind;
  LAZULI_OP("orthogonal_polynomial", "aten::special_polynomial", kind);
  static constexpr OpDoc kDoc{
      "The orthogonal polynomial of degree n at x; kinds: Chebyshev's T, U, V, W, Hermite's H and "
      "He, Laguerre's, Legendre's.",
      {"x", "n"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x, lowering::Op n) const;
};

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
