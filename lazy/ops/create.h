// Ops without tensor operands: filled arrays, ranges, random numbers.
#pragma once

#include "lazy/ops/functions.h"
#include "lazy/ops/op.h"

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
  static constexpr OpDoc kDoc{"Elements that are their position along dim.", {}};
  absl::StatusOr<Shape> Infer() const { return Shape::Make(dtype, dims); }
  lowering::Op Lower(lowering::Builder& b) const { return b.Iota(Shape(dtype, dims), dim); }
};

// Uniform in [0, 1) from as many random bits as the dtype has digits: 24 for f32, 53 for f64. Seed
// and offset are 64-bit numbers in halves: slots, so that every step runs the same program.
struct UniformOp {
  Dims dims;
  DType dtype;
  LAZULI_OP("rand", "aten::rand", dims, dtype);
  static constexpr OpDoc kDoc{"Uniform random numbers in [0, 1), Philox 4x32-10.",
                              {"seed_low", "seed_high", "offset_low", "offset_high"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op seed_low, lowering::Op seed_high,
                     lowering::Op offset_low, lowering::Op offset_high) const;
};

// Standard normal by the transform of Box and Muller (1958), two 32-bit numbers an element.
struct NormalOp {
  Dims dims;
  DType dtype;
  LAZULI_OP("randn", "aten::randn", dims, dtype);
  static constexpr OpDoc kDoc{"Normal random numbers, mean 0 and deviation 1.",
                              {"seed_low", "seed_high", "offset_low", "offset_high"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op seed_low, lowering::Op seed_high,
                     lowering::Op offset_low, lowering::Op offset_high) const;
};

}  // namespace lazuli::lazy
