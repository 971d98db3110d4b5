// The error function's relatives as ops: erfc, erfcx and erfinv. error_function.cc also defines the normal
// distribution made of them: ndtr, log_ndtr, ndtri.
#pragma once

#include "lazy/ops/elementwise/elementwise.h"

namespace lazuli::lazy {

// 1 - erf(x) with all its digits where erf(x) is nearly 1.
struct ErfcOp {
  LAZULI_OP("erfc", "aten::erfc");
  static constexpr OpDoc kDoc{
      "1 - erf(x) of each element, accurate also where the result is small.", {"x"}};
  static constexpr Saves kSaves = kSaveX;
  absl::StatusOr<Shape> Infer(const Shape& x) const {
    return UnaryShape(Accepts::kFloat, lowering::Opcode::kErf, x);
  }
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

// erfc(x) times exp(x^2), which is a number where either alone overflows or is 0.
struct ErfcxOp {
  LAZULI_OP("erfcx", "aten::special_erfcx");
  static constexpr OpDoc kDoc{"exp(x^2) erfc(x) of each element.", {"x"}};
  static constexpr Saves kSaves{.inputs = 1, .outputs = 1};
  absl::StatusOr<Shape> Infer(const Shape& x) const {
    return UnaryShape(Accepts::kFloat, lowering::Opcode::kErf, x);
  }
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

// The inverse of erf, which Newton's method makes of an approximation.
struct ErfinvOp {
  LAZULI_OP("erfinv", "aten::erfinv");
  static constexpr OpDoc kDoc{"The inverse of erf for each element; NaN outside of [-1, 1].",
                              {"x"}};
  static constexpr Saves kSaves = kSaveResult;
  absl::StatusOr<Shape> Infer(const Shape& x) const {
    return UnaryShape(Accepts::kFloat, lowering::Opcode::kErf, x);
  }
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

}  // namespace lazuli::lazy
