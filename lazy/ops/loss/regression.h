// The op of Huber's loss. regression.cc also defines the other losses between a value and its target: mse,
// L1, Kullback-Leibler, Poisson and Gaussian likelihoods.
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

// Of the difference of x and y.
struct HuberOp {
  bool smooth_l1;  // divided by delta, which is called beta there
  LAZULI_OP("huber_loss", "aten::huber_loss", smooth_l1);
  static constexpr OpDoc kDoc{
      "With d the absolute difference: d^2 / 2 up to delta, delta (d - delta / 2) beyond.",
      {"difference", "delta"}};
  static constexpr Saves kSaves = kSaveXY;
  lowering::Op Lower(lowering::Builder& b, lowering::Op difference, lowering::Op delta) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;  // of the difference only
};

}  // namespace lazuli::lazy
