// Normalisation: elements shifted and scaled to mean 0 and variance 1 over some dims. Weights,
// biases and running statistics are what composites add (Affine, cpp_api/nn).
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

struct LayerNormOp {
  int64_t axis;  // over the dims from this one on
  double eps;
  LAZULI_OP("layer_norm", "aten::native_layer_norm", axis, eps);
  static constexpr OpDoc kDoc{
      "(x - mean) / sqrt(variance + eps) over the dims from axis on; the mean; the variance.",
      {"x"}};
  static constexpr Saves kSaves{.outputs = 5};
  std::array<lowering::Op, 3> Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, absl::Span<const Tensor> dys) const;
};

struct BatchNormOp {
  double eps;
  LAZULI_OP("batch_norm", "aten::native_batch_norm", eps);
  static constexpr OpDoc kDoc{
      "(x - mean) / sqrt(variance + eps) over all dims but 1, the channels; the mean; the "
      "variance.",
      {"x"}};
  static constexpr Saves kSaves{.outputs = 5};
  std::array<lowering::Op, 3> Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, absl::Span<const Tensor> dys) const;
};

}  // namespace lazuli::lazy
