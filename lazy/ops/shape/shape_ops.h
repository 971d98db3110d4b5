// Ops that move elements: reshape, broadcast, permute, slice, pad, flip, cat.
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

// x without its first, or without its last, n positions along dim.
inline Tensor After(const Tensor& x, int64_t dim, int64_t n) {
  return Narrow(x, dim, n, x.dim(dim) - n);
}
inline Tensor Before(const Tensor& x, int64_t dim, int64_t n) {
  return Narrow(x, dim, 0, x.dim(dim) - n);
}

struct ReshapeOp {
  Dims dims;
  LAZULI_OP("reshape", "aten::view", dims);
  static constexpr OpDoc kDoc{"The same elements in row-major order under other dims.", {"x"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const { return b.Reshape(x, dims); }
  Tensors Vjp(const Saved& s, const Tensor& dy) const { return {Reshape(dy, s.shape().dims())}; }
};

struct BroadcastToOp {
  Dims dims;
  LAZULI_OP("broadcast_to", "aten::expand", dims);
  static constexpr OpDoc kDoc{
      "x broadcast to dims: dims of size 1, and new leading dims, repeat its elements.", {"x"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const { return b.BroadcastTo(x, dims); }
  Tensors Vjp(const Saved& s, const Tensor& dy) const { return {SumToShape(dy, s.shape())}; }
};

struct PermuteOp {
  Dims dims;
  LAZULI_OP("permute", "aten::permute", dims);
  static constexpr OpDoc kDoc{"Dimensions reordered: dim i of the result is dim dims[i] of x.",
                              {"x"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const { return b.Transpose(x, dims); }
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct SliceOp {
  Dims starts, limits, strides;
  LAZULI_OP("slice", "aten::slice", starts, limits, strides);
  static constexpr OpDoc kDoc{"Elements starts, starts + strides, ... below limits along each dim.",
                              {"x"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const {
    return b.Slice(x, starts, limits, strides);
  }
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct SelectOp {
  int64_t dim, index;
  LAZULI_OP("select", "aten::select", dim, index);
  static constexpr OpDoc kDoc{"The elements at one position along dim, without that dim.", {"x"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct PadOp {
  Dims low, high, interior;
  LAZULI_OP("pad", "aten::constant_pad_nd", low, high, interior);
  static constexpr OpDoc kDoc{
      "x with zeros added around it, or with elements removed for negative numbers, and zeros "
      "between its elements.",
      {"x"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const {
    return b.Pad(x, b.Scalar(x.dtype(), 0), low, high, interior);
  }
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct FlipOp {
  Dims dims;
  LAZULI_OP("flip", "aten::flip", dims);
  static constexpr OpDoc kDoc{"Elements in reverse order along dims.", {"x"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const { return b.Reverse(x, dims); }
  Tensors Vjp(const Saved&, const Tensor& dy) const { return {Flip(dy, dims)}; }
};

struct CatOp {
  int64_t dim;
  LAZULI_OP("cat", "aten::cat", dim);
  static constexpr OpDoc kDoc{"Tensors one after the other along dim.", {"xs"}};
  lowering::Op Lower(lowering::Builder& b, absl::Span<const lowering::Op> xs) const {
    return b.Concatenate(xs, dim);
  }
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

// --- arguments of users as the ops take them; throws what the function `op` refuses
Dims ReshapedDims(std::string_view op, const Shape& x, absl::Span<const int64_t> dims);
Dims FlattenedDims(const Shape& x, int64_t start_dim, int64_t end_dim);
Dims Permutation(std::string_view op, const Shape& x, absl::Span<const int64_t> dims);
Dims TransposedDims(const Shape& x, int64_t dim0, int64_t dim1);
// The dim, and the start, which may count from the end.
std::pair<int64_t, int64_t> CheckedNarrow(const Shape& x, int64_t dim, int64_t start,
                                          int64_t length);
std::pair<int64_t, int64_t> CheckedSelect(const Shape& x, int64_t dim, int64_t index);

}  // namespace lazuli::lazy
