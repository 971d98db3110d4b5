// How a sample moves with a parameter of its distribution if the share of the distribution below it
// stays: the derivative of that share for the parameter, divided by the density and negated.
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

// For a gamma distribution, in f64: a and x are above 0, psi is digamma(a).
struct GammaSlopeOp {
  LAZULI_OP("gamma_slope", "aten::gamma_slope");
  static constexpr OpDoc kDoc{"The derivative of a gamma number for its shape parameter.",
                              {"a", "x", "psi"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op a, lowering::Op x, lowering::Op psi) const;
};

// For a beta distribution, in f64 and divided by 1 - x: x is in (0, 1), psi is digamma(a) -
// digamma(a + b).
struct BetaSlopeOp {
  LAZULI_OP("beta_slope", "aten::beta_slope");
  static constexpr OpDoc kDoc{
      "The derivative of a beta number for its first parameter, over 1 - x.",
      {"x", "a", "b", "psi"}};
  lowering::Op Lower(lowering::Builder& builder, lowering::Op x, lowering::Op a, lowering::Op b,
                     lowering::Op psi) const;
};

}  // namespace lazuli::lazy
