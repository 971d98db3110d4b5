// Convolutions of images, and their gradients. convolution.cc also defines conv1d; those of volumes and
// transposed ones are in convolution_3d.cc.
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

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
  static constexpr OpDoc kDoc{"The gradient of conv2d with respect to its input.",
                              {"dy", "weight"}};
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
  static constexpr OpDoc kDoc{"The gradient of conv2d with respect to its weight.", {"x", "dy"}};
  static constexpr Saves kSaves = kSaveXY;
  lowering::Op Lower(lowering::Builder& b, lowering::Op x, lowering::Op dy) const;
  Tensors Vjp(const Saved& s, const Tensor& g) const;
};

// One number for each of n dims, `least` at least: the only one stands for all, `fallback` for none.
Dims Sizes(std::string_view op, std::string_view what, absl::Span<const int64_t> given, int64_t n,
           int64_t fallback, int64_t least);

}  // namespace lazuli::lazy
