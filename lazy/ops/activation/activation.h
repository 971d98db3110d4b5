// The activations that are ops of their own, as their gradients are no product of the gradients of
// their parts. Relu, sigmoid and tanh are elementwise ops; the others are composites of those
// (activation.cc).
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

struct GeluOp {
  bool tanh;  // by the approximation of Hendrycks and Gimpel (2016), which needs no erf
  LAZULI_OP("gelu", "aten::gelu", tanh);
  static constexpr OpDoc kDoc{"x times the probability that a standard normal variable is below x.",
                              {"x"}};
  static constexpr Saves kSaves = kSaveX;
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct EluOp {
  bool continuous;  // celu
  LAZULI_OP("elu", "aten::elu", continuous);
  static constexpr OpDoc kDoc{
      "x, or alpha * (exp(x) - 1) where x is negative; with `continuous`, alpha * (exp(x / alpha) "
      "- 1).",
      {"x", "alpha"}};
  static constexpr Saves kSaves = kSaveXY;
  lowering::Op Lower(lowering::Builder& b, lowering::Op x, lowering::Op alpha) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;  // of x only
};

struct LogSigmoidOp {
  LAZULI_OP("log_sigmoid", "aten::log_sigmoid");
  static constexpr OpDoc kDoc{"log(sigmoid(x)), stable.", {"x"}};
  static constexpr Saves kSaves = kSaveX;
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

}  // namespace lazuli::lazy
