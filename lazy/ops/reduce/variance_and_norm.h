// Variance, standard deviation and norms. Ops of their own: where a root is 0, or a difference infinite,
// the gradients of their parts multiply 0 by infinity. They are recorded of wide floats (wide.h), so that
// the gradients are computed like that, too.
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

struct VarOp {
  Dims dims;
  double correction;
  bool keepdim;
  LAZULI_OP("var", "aten::var", dims, correction, keepdim);
  static constexpr OpDoc kDoc{
      "Variance over dims: the sum of squares divided by the number of elements - correction.",
      {"x"}};
  static constexpr Saves kSaves = kSaveX;
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct StdOp {
  Dims dims;
  double correction;
  bool keepdim;
  LAZULI_OP("std", "aten::std", dims, correction, keepdim);
  static constexpr OpDoc kDoc{"Square root of var. Its gradient at 0 is 0.", {"x"}};
  static constexpr Saves kSaves{.inputs = 1, .outputs = 1};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct NormOp {
  Dims dims;
  bool keepdim;
  LAZULI_OP("norm", "aten::linalg_vector_norm", dims, keepdim);
  static constexpr OpDoc kDoc{
      "Square root of the sum of squares over dims. Its gradient at 0 is 0.", {"x"}};
  static constexpr Saves kSaves{.inputs = 1, .outputs = 1};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

}  // namespace lazuli::lazy
