// Matrix products and convolutions.
#pragma once

#include "lazy/ops/functions.h"
#include "lazy/ops/op.h"

namespace lazuli::lazy {

// Why no sum of products is made of two operands; OK if it is. They have one dtype, and are no truth values: of those there
// are two products, of numbers and of conditions, and to() says which is meant.
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

struct Conv2dOp {
  Pair stride, padding, dilation;
  int64_t groups;
  LAZULI_OP("conv2d", "aten::convolution", stride, padding, dilation, groups);
  static constexpr OpDoc kDoc{
      "2-D convolution of x [N, C, H, W] with weight [O, C / groups, kh, kw].", {"x", "weight"}};
  static constexpr Saves kSaves = kSaveXY;
  absl::StatusOr<Shape> Infer(const Shape& x, const Shape& weight) const;
  lowering::Op Lower(lowering::Builder& b, lowering::Op x, lowering::Op weight) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

// Gradient of conv2d with respect to its input, whose height and width are `size`.
struct Conv2dInputGradOp {
  Pair stride, padding, dilation;
  int64_t groups;
  Pair size;
  LAZULI_OP("conv2d_input_grad", "aten::convolution_backward_input", stride, padding, dilation,
            groups, size);
  static constexpr OpDoc kDoc{"Gradient of conv2d for its input.", {"dy", "weight"}};
  static constexpr Saves kSaves = kSaveXY;
  lowering::Op Lower(lowering::Builder& b, lowering::Op dy, lowering::Op weight) const;
  Tensors Vjp(const Saved& s, const Tensor& g) const;
};

// Gradient of conv2d with respect to its weight, whose kernel is `size`.
struct Conv2dWeightGradOp {
  Pair stride, padding, dilation;
  int64_t groups;
  Pair size;
  LAZULI_OP("conv2d_weight_grad", "aten::convolution_backward_weight", stride, padding, dilation,
            groups, size);
  static constexpr OpDoc kDoc{"Gradient of conv2d for its weight.", {"x", "dy"}};
  static constexpr Saves kSaves = kSaveXY;
  lowering::Op Lower(lowering::Builder& b, lowering::Op x, lowering::Op dy) const;
  Tensors Vjp(const Saved& s, const Tensor& g) const;
};

}  // namespace lazuli::lazy
