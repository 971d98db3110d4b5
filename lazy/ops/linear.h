// Matrix products, convolutions and pooling.
#pragma once

#include "lazy/ops/functions.h"
#include "lazy/ops/op.h"

namespace lazuli::lazy {

// Both operands have rank >= 2; leading dims broadcast. Rank-1 operands are the composite's
// business (MatMul).
struct MatMulOp {
  LAZULI_OP("matmul", "aten::matmul");
  static constexpr OpDoc kDoc{"Matrix product of the last two dims; leading dims broadcast.",
                              {"x", "y"}};
  static constexpr Saves kSaves = kSaveXY;
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
  static constexpr Saves kSaves = kSaveXY;
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

struct MaxPool2dOp {
  Pair kernel, stride, padding;
  LAZULI_OP("max_pool2d", "aten::max_pool2d", kernel, stride, padding);
  static constexpr OpDoc kDoc{
      "Largest element of each window of x [N, C, H, W]; padding never wins.", {"x"}};
  static constexpr Saves kSaves = kSaveX;
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct MaxPool2dGradOp {
  Pair kernel, stride, padding;
  LAZULI_OP("max_pool2d_grad", "aten::max_pool2d_with_indices_backward", kernel, stride, padding);
  static constexpr OpDoc kDoc{"dy added where each window's first maximum lies in x.", {"x", "dy"}};
  static constexpr Saves kSaves = kSaveX;
  lowering::Op Lower(lowering::Builder& b, lowering::Op x, lowering::Op dy) const;
  Tensors Vjp(const Saved& s, const Tensor& g) const;
};

// The transpose of MaxPool2dGradOp, for gradients of gradients.
struct MaxPool2dPickOp {
  Pair kernel, stride, padding;
  LAZULI_OP("max_pool2d_pick", "aten::max_pool2d_pick", kernel, stride, padding);
  static constexpr OpDoc kDoc{"The element of g where each window of x has its first maximum.",
                              {"x", "g"}};
  static constexpr Saves kSaves = kSaveX;
  lowering::Op Lower(lowering::Builder& b, lowering::Op x, lowering::Op g) const;
  Tensors Vjp(const Saved& s, const Tensor& h) const;
};

struct AvgPool2dOp {
  Pair kernel, stride, padding;
  LAZULI_OP("avg_pool2d", "aten::avg_pool2d", kernel, stride, padding);
  static constexpr OpDoc kDoc{"Mean of each window of x [N, C, H, W]; padding counts as zeros.",
                              {"x"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

// Gradient of avg_pool2d, whose input has the height and width `size`.
struct AvgPool2dGradOp {
  Pair kernel, stride, padding, size;
  LAZULI_OP("avg_pool2d_grad", "aten::avg_pool2d_backward", kernel, stride, padding, size);
  static constexpr OpDoc kDoc{"dy spread evenly over each window of avg_pool2d.", {"dy"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op dy) const;
  Tensors Vjp(const Saved& s, const Tensor& g) const;
};

}  // namespace lazuli::lazy
