// Matrix products: matmul, and linear, whose right operand lies transposed.
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

// An error unless the operands of a sum of products have one dtype, which is not bool. For bools two products are possible,
// one of numbers and one of conditions, so the error asks for to(), which says which is meant.
absl::Status CheckFactors(const Shape& x, const Shape& y);
void CheckFactors(std::string_view op, const Tensor& x, const Tensor& y);

// Both operands have rank >= 2; leading dims broadcast. Rank-1 operands are the composite's
// business (MatMul).
struct MatMulOp {
  LAZULI_OP("matmul", "aten::matmul");
  static constexpr OpDoc kDoc{"Matrix product of the last two dims; leading dims broadcast.",
                              {"x", "y"}};
  static constexpr Saves kSaves = kSaveOther;
  absl::StatusOr<Shape> Infer(const Shape& x, const Shape& y) const;
  lowering::Op Lower(lowering::Builder& b, lowering::Op x, lowering::Op y) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

// A matrix product whose right operand lies transposed, as layers keep their weights: both
// gradients come out in the layout of what they belong to.
struct LinearOp {
  LAZULI_OP("linear", "aten::linear");
  static constexpr OpDoc kDoc{"x [..., in] times the transpose of weight [out, in].",
                              {"x", "weight"}};
  static constexpr Saves kSaves = kSaveOther;
  lowering::Op Lower(lowering::Builder& b, lowering::Op x, lowering::Op weight) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

// A bias has one number for each row, or channel, of the weight.
void CheckBias(std::string_view op, std::string_view what, const Tensor& bias,
               const Tensor& weight);

}  // namespace lazuli::lazy
