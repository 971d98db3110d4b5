// Ops that move elements or slices to or from positions that are data, and orders along a dim:
// gather, scatter, index_select, cumsum, sort.
#pragma once

#include <array>

#include "lazy/ops/functions.h"
#include "lazy/ops/op.h"

namespace lazuli::lazy {

// Why an index of slices is none; OK if it is one. Integers of another rank are a mistake of indexing,
// as torch has it.
absl::Status CheckRows(const Shape& index);

struct GatherOp {
  int64_t dim;
  LAZULI_OP("gather", "aten::gather", dim);
  static constexpr OpDoc kDoc{
      "The elements of x whose position along dim the index says and whose other positions are "
      "their own; one outside fails the run.",
      {"x", "index"}};
  static constexpr Saves kSaves{.inputs = 2};
  lowering::Op Lower(lowering::LoweringContext& c, lowering::Op x, lowering::Op index) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct ScatterAddOp {
  int64_t dim;
  LAZULI_OP("scatter_add", "aten::scatter_add", dim);
  static constexpr OpDoc kDoc{
      "x plus the elements of source, each at the position along dim that the index says; one "
      "outside fails the run.",
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
      "x with the elements of source, each at the position along dim that the index says: the last "
      "one where several meet; one outside fails the run.",
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
      "x with its elements and those of source that go to the same position along dim made one, or "
      "those of source alone; a position outside fails the run.",
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
      "Slices of x along dim at the positions of a rank-1 index; one outside fails the run.",
      {"x", "index"}};
  static constexpr Saves kSaves{.inputs = 2};
  lowering::Op Lower(lowering::LoweringContext& c, lowering::Op x, lowering::Op index) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct IndexAddOp {
  int64_t dim;
  LAZULI_OP("index_add", "aten::index_add", dim);
  static constexpr OpDoc kDoc{
      "x with the slices of source added at the positions of a rank-1 index along dim; one outside "
      "fails the run.",
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
      "x with the slices of source at the positions of a rank-1 index along dim: the last one "
      "where "
      "several meet; one outside fails the run.",
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
      "How many elements that are true precede each that is, in row-major order; 0 elsewhere. "
      "Another number of them than `count` fails the run.",
      {"mask"}};
  lowering::Op Lower(lowering::LoweringContext& c, lowering::Op mask) const;
};

struct CumSumOp {
  int64_t dim;
  LAZULI_OP("cumsum", "aten::cumsum", dim);
  static constexpr OpDoc kDoc{"Running sum along dim; integers and pred sum to s64.", {"x"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct SortOp {
  int64_t dim;
  bool descending;
  LAZULI_OP("sort", "aten::sort", dim, descending);
  static constexpr OpDoc kDoc{
      "The elements in order along dim, and where each stood (s64). Equal ones keep their order; "
      "NaN is the largest.",
      {"x"}};
  static constexpr Saves kSaves{.outputs = 2};
  std::array<lowering::Op, 2> Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, absl::Span<const Tensor> dys) const;
};

}  // namespace lazuli::lazy
