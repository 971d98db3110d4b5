// Orthogonal polynomials: Chebyshev's, Hermite's, Laguerre's and Legendre's. PyTorch gives them no
// gradient.
#pragma once

#include "lazy/ops/elementwise/elementwise.h"

namespace lazuli::lazy {

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

}  // namespace lazuli::lazy
