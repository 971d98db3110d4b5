// The op logit. logarithms.cc also defines the logarithms and powers of fixed bases, and the functions
// that multiply or add logarithms: log2, exp2, logaddexp, xlogy, entr.
#pragma once

#include "lazy/ops/elementwise/elementwise.h"

namespace lazuli::lazy {

struct LogitOp {
  LAZULI_OP("logit", "aten::logit");
  static constexpr OpDoc kDoc{"log(x / (1 - x)) of each element.", {"x"}};
  static constexpr Saves kSaves = kSaveX;
  absl::StatusOr<Shape> Infer(const Shape& x) const {
    return UnaryShape(Accepts::kFloat, lowering::Opcode::kErf, x);
  }
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

}  // namespace lazuli::lazy
