// Elements at strides from an offset, in memory that is an array's elements in row-major order: what
// every view is, and what a write through one writes to.
//
// Lowering finds the rectangle that the elements are in some array of the memory's size, so that
// slices, transposes and updates in place remain of them; elements that are none (windows that
// overlap, a stride across rows) are gathered and scattered. A view may see its memory with another
// dtype, as the parts of complex numbers are; its strides and offset count its own elements.
#pragma once

#include <optional>

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

// How the elements of an array lie in memory.
struct Geometry {
  Dims strides;  // of elements
  int64_t offset = 0;
};
// Row-major strides, as torch counts them: dims of size 0 as if of 1.
Dims ContiguousStrides(absl::Span<const int64_t> dims);
// Of a tensor's elements in the memory of what it is a view of.
Geometry GeometryOf(const Tensor& x);
// Whether elements with these strides lie one after the other in row-major order.
bool IsContiguous(absl::Span<const int64_t> dims, absl::Span<const int64_t> strides);
// Whether each of `count` elements is one of those at the strides, once.
bool IsWhole(absl::Span<const int64_t> dims, const Geometry& geometry, int64_t count);
// Whether some element is several of those at the strides.
bool IsExpanded(absl::Span<const int64_t> dims, absl::Span<const int64_t> strides);

struct AsStridedOp {
  Dims dims, strides;
  int64_t offset;
  DType dtype;
  LAZULI_OP("as_strided", "aten::as_strided", dims, strides, offset, dtype);
  static constexpr OpDoc kDoc{
      "The elements at strides from an offset in the memory of x, read as elements of the dtype.",
      {"x"}};
  absl::StatusOr<Shape> Infer(const Shape&) const { return Shape(dtype, dims); }
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct AsStridedScatterOp {
  Dims strides;
  int64_t offset;
  LAZULI_OP("as_strided_scatter", "aten::as_strided_scatter", strides, offset);
  static constexpr OpDoc kDoc{
      "x with the elements at strides from an offset replaced by those of source, as elements of "
      "source's dtype.",
      {"x", "source"}};
  absl::StatusOr<Shape> Infer(const Shape& x, const Shape&) const { return x; }
  lowering::Op Lower(lowering::Builder& b, lowering::Op x, lowering::Op source) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

// How many elements of the dtype there are in the memory of an array.
int64_t CountIn(const Shape& memory, DType dtype);

// What makes a tensor of this geometry a view of x's memory.
std::unique_ptr<View> MakeView(const Tensor& x, Geometry&& geometry);

// Records `op` of an operand, whose result has this shape and is the elements of x with this
// geometry, as a view of x.
template <OpStruct T>
Tensor RecordView(T op, const Tensor& operand, const Tensor& x, Shape shape, Geometry geometry,
                  bool one_of_several = false) {
  return RecordViewOf(std::move(op), operand, std::move(shape),
                      {&x, MakeView(x, std::move(geometry)), one_of_several});
}
// The same with the dtype of x.
template <OpStruct T>
Tensor RecordView(T op, const Tensor& operand, const Tensor& x, absl::Span<const int64_t> dims,
                  Geometry geometry, bool one_of_several = false) {
  return RecordView(std::move(op), operand, x, Shape(x.dtype(), dims), std::move(geometry),
                    one_of_several);
}
// A view of which nothing is recorded yet; to be written to.
Tensor MakeUnreadView(const Tensor& x, const Shape& shape, Geometry geometry);

}  // namespace lazuli::lazy
