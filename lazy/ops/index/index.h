// Ops that move elements or slices to or from positions that are data: gather, scatter, index_select,
// index_add, index_copy, and assignment under a mask.
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

// Why an index of slices is none; OK if it is one. Integers of another rank are a mistake of indexing,
// as torch has it.
absl::Status CheckRows(const Shape& index);

struct GatherOp {
  int64_t dim;
  LAZULI_OP("gather", "aten::gather", dim);
  static constexpr OpDoc kDoc{
      "The elements of x at the positions along dim that the index gives; their other positions "
      "are those in the index. A position out of range fails the run.",
      {"x", "index"}};
  static constexpr Saves kSaves{.inputs = 2};
  lowering::Op Lower(lowering::LoweringContext& c, lowering::Op x, lowering::Op index) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct ScatterAddOp {
  int64_t dim;
  LAZULI_OP("scatter_add", "aten::scatter_add", dim);
  static constexpr OpDoc kDoc{
      "x plus the elements of source, each added at the position along dim that the index gives. A "
      "position out of range fails the run.",
      {"x", "index", "source"}};
  static constexpr Saves kSaves{.inputs = 2};
  lowering::Op Lower(lowering::LoweringContext& c, lowering::Op x, lowering::Op index,
                     lowering::Op source) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct ScatterOp {
  int64_t dim;
  LAZULI_OP("scatter", "aten::scatter", dim);
  static constexpr OpDoc kDoc{
      "x with the elements of source written at the positions along dim that the index gives; of "
      "several at one position, the last one stays. A position out of range fails the run.",
      {"x", "index", "source"}};
  static constexpr Saves kSaves{.inputs = 2};
  lowering::Op Lower(lowering::LoweringContext& c, lowering::Op x, lowering::Op index,
                     lowering::Op source) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

enum class ScatterCombiner : uint8_t { kProduct, kLargest, kSmallest };

struct ScatterReduceOp {
  int64_t dim;
  ScatterCombiner combiner;
  bool include_self;
  LAZULI_OP("scatter_reduce", "aten::scatter_reduce", dim, combiner, include_self);
  static constexpr OpDoc kDoc{
      "x with the elements of source that go to one position along dim reduced to one, together "
      "with the element of x there or without it. A position out of range fails the run.",
      {"x", "index", "source"}};
  static constexpr Saves kSaves{.inputs = 7, .outputs = 1};
  lowering::Op Lower(lowering::LoweringContext& c, lowering::Op x, lowering::Op index,
                     lowering::Op source) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct IndexSelectOp {
  int64_t dim;
  LAZULI_OP("index_select", "aten::index_select", dim);
  static constexpr OpDoc kDoc{
      "The slices of x along dim at the positions in an index of rank 1. A position out of range "
      "fails the run.",
      {"x", "index"}};
  static constexpr Saves kSaves{.inputs = 2};
  lowering::Op Lower(lowering::LoweringContext& c, lowering::Op x, lowering::Op index) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct IndexAddOp {
  int64_t dim;
  LAZULI_OP("index_add", "aten::index_add", dim);
  static constexpr OpDoc kDoc{
      "x with the slices of source added along dim at the positions in an index of rank 1. A "
      "position out of range fails the run.",
      {"x", "index", "source"}};
  static constexpr Saves kSaves{.inputs = 2};
  lowering::Op Lower(lowering::LoweringContext& c, lowering::Op x, lowering::Op index,
                     lowering::Op source) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct IndexCopyOp {
  int64_t dim;
  LAZULI_OP("index_copy", "aten::index_copy", dim);
  static constexpr OpDoc kDoc{
      "x with the slices of source written along dim at the positions in an index of rank 1; of "
      "several at one position, the last one stays. A position out of range fails the run.",
      {"x", "index", "source"}};
  static constexpr Saves kSaves{.inputs = 2};
  lowering::Op Lower(lowering::LoweringContext& c, lowering::Op x, lowering::Op index,
                     lowering::Op source) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

// Where the elements of a mask take their values from when it is assigned to.
struct MaskPositionsOp {
  int64_t count;
  LAZULI_OP("mask_positions", "aten::mask_positions", count);
  static constexpr OpDoc kDoc{
      "For each true element, the number of true elements before it in row-major order; 0 "
      "elsewhere. The run fails if there are not exactly `count` of them.",
      {"mask"}};
  lowering::Op Lower(lowering::LoweringContext& c, lowering::Op mask) const;
};

}  // namespace lazuli::lazy
