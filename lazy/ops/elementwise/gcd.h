// The greatest common divisor of integers.
#pragma once

#include "lazy/ops/elementwise/elementwise.h"

namespace lazuli::lazy {

// By Euclid's algorithm.
struct GcdOp {
  LAZULI_OP("gcd", "aten::gcd");
  static constexpr OpDoc kDoc{"Greatest common divisor of integers.", {"x", "y"}};
  absl::StatusOr<Shape> Infer(const Shape& x, const Shape& y) const {
    return BinaryShape(Accepts::kInteger, lowering::Opcode::kRemainder, x, y);
  }
  lowering::Op Lower(lowering::Builder& b, lowering::Op x, lowering::Op y) const;
};

}  // namespace lazuli::lazy
