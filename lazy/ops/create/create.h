// Ops without tensor operands that are not random: filled arrays and positions.
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

struct FullOp {
  Dims dims;
  LAZULI_OP("full", "aten::full", dims);
  static constexpr OpDoc kDoc{"A tensor of dims filled with a number.", {"value"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op value) const {
    return b.Broadcast(value, dims, {});
  }
};

struct PositionsOp {
  Dims dims;
  int64_t dim;
  DType dtype;
  LAZULI_OP("arange", "aten::arange", dims, dim, dtype);
  static constexpr OpDoc kDoc{"Each element is its position along dim.", {}};
  absl::StatusOr<Shape> Infer() const { return Shape::Make(dtype, dims); }
  lowering::Op Lower(lowering::Builder& b) const { return b.Iota(Shape(dtype, dims), dim); }
};

}  // namespace lazuli::lazy
