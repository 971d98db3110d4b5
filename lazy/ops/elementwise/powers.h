// The op hypot. powers.cc also defines float_power.
#pragma once

#include "lazy/ops/elementwise/elementwise.h"

namespace lazuli::lazy {

struct HypotOp {
  LAZULI_OP("hypot", "aten::hypot");
  static constexpr OpDoc kDoc{"sqrt(x^2 + y^2), without overflow.", {"x", "y"}};
  static constexpr Saves kSaves = kSaveXYZ;
  absl::StatusOr<Shape> Infer(const Shape& x, const Shape& y) const {
    return BinaryShape(Accepts::kFloat, lowering::Opcode::kMaximum, x, y);
  }
  lowering::Op Lower(lowering::Builder& b, lowering::Op x, lowering::Op y) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

}  // namespace lazuli::lazy
