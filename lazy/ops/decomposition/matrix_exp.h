// The exponential of matrices.
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

struct MatrixExpOp {
  LAZULI_OP("matrix_exp", "aten::linalg_matrix_exp");
  static constexpr OpDoc kDoc{
      "The sum of A^k / k! of square matrices: a polynomial of A scaled down by powers of two, and "
      "squares of it.",
      {"A"}};
  static constexpr Saves kSaves = kSaveX;
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

}  // namespace lazuli::lazy
