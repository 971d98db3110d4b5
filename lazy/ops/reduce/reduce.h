// Reductions along dimensions. `dims` is sorted and non-negative by the time it is an attribute.
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

// How many elements of x go into one of the result.
double CountOver(const Shape& x, const Dims& dims);
// A reduced result (or its gradient) stretched back over what was reduced.
Tensor Spread(const Tensor& y, const Shape& x, const Dims& dims);

struct SumOp {
  Dims dims;
  bool keepdim;
  LAZULI_OP("sum", "aten::sum", dims, keepdim);
  static constexpr OpDoc kDoc{"Sum over dims; integers and pred sum to s64.", {"x"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct ProdOp {
  Dims dims;
  bool keepdim;
  LAZULI_OP("prod", "aten::prod", dims, keepdim);
  static constexpr OpDoc kDoc{"Product over dims; integers and pred multiply to s64.", {"x"}};
  static constexpr Saves kSaves = kSaveX;
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct AmaxOp {
  Dims dims;
  bool keepdim;
  LAZULI_OP("amax", "aten::amax", dims, keepdim);
  static constexpr OpDoc kDoc{
      "The largest element over dims, or NaN if there is one. Equal elements share the gradient.",
      {"x"}};
  static constexpr Saves kSaves{.inputs = 1, .outputs = 1};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct AminOp {
  Dims dims;
  bool keepdim;
  LAZULI_OP("amin", "aten::amin", dims, keepdim);
  static constexpr OpDoc kDoc{
      "The smallest element over dims, or NaN if there is one. Equal elements share the gradient.",
      {"x"}};
  static constexpr Saves kSaves{.inputs = 1, .outputs = 1};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct MaxAlongOp {
  int64_t dim;
  bool keepdim;
  LAZULI_OP("max", "aten::max", dim, keepdim);
  static constexpr OpDoc kDoc{"Largest elements along dim and the first index of each (s64).",
                              {"x"}};
  static constexpr Saves kSaves{.outputs = 2};
  std::array<lowering::Op, 2> Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, absl::Span<const Tensor> dys) const;
};

struct ArgMaxOp {
  int64_t dim;
  bool keepdim;
  LAZULI_OP("argmax", "aten::argmax", dim, keepdim);
  static constexpr OpDoc kDoc{"First index of the largest element along dim (s64).", {"x"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
};

// A value reduced along dim, stretched back over x.
lowering::Op SpreadAlong(lowering::Builder& b, lowering::Op y, const Shape& x, int64_t dim);

}  // namespace lazuli::lazy
