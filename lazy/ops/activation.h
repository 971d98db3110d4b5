// Gelu, the one activation that is an op of its own: dumps show it by name, and its gradient is one
// expression. Relu, sigmoid and tanh are elementwise ops; the other activations are composites of
// those (activation.cc).
#pragma once

#include "lazy/ops/functions.h"
#include "lazy/ops/op.h"

namespace lazuli::lazy {

struct GeluOp {
  bool tanh;  // by the approximation of Hendrycks and Gimpel (2016), which needs no erf
  LAZULI_OP("gelu", "aten::gelu", tanh);
  static constexpr OpDoc kDoc{"x times the normal distribution's probability of a value below x.",
                              {"x"}};
  static constexpr Saves kSaves = kSaveX;
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

}  // namespace lazuli::lazy
