// Binary cross entropy, of probabilities and of logits.
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

struct BceWithLogitsOp {
  LAZULI_OP("binary_cross_entropy_with_logits", "aten::binary_cross_entropy_with_logits");
  static constexpr OpDoc kDoc{
      "-(y log(sigmoid(x)) + (1 - y) log(1 - sigmoid(x))) of each element, stable.",
      {"logits", "target"}};
  static constexpr Saves kSaves = kSaveXY;
  lowering::Op Lower(lowering::Builder& b, lowering::Op logits, lowering::Op target) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct BceOp {
  LAZULI_OP("binary_cross_entropy", "aten::binary_cross_entropy");
  static constexpr OpDoc kDoc{
      "-(y log(x) + (1 - y) log(1 - x)) of each element; logarithms are at least -100.",
      {"x", "target"}};
  static constexpr Saves kSaves = kSaveXY;
  lowering::Op Lower(lowering::LoweringContext& c, lowering::Op x, lowering::Op target) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

}  // namespace lazuli::lazy
