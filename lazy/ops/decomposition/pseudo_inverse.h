// The gradient of the pseudo-inverse (Moore and Penrose). There is one where the rank does not change,
// even where singular vectors have none.
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

struct PinvOp {
  LAZULI_OP("pinv", "aten::linalg_pinv");
  static constexpr OpDoc kDoc{"`inverse`, with the gradient of the pseudo-inverse of A.",
                              {"A", "inverse"}};
  static constexpr Saves kSaves{.inputs = 1, .outputs = 1};
  lowering::Op Lower(lowering::Builder& b, lowering::Op a, lowering::Op inverse) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

}  // namespace lazuli::lazy
