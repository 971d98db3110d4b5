// Tensors with other elements where a view would lie: select_scatter, slice_scatter, diagonal_scatter,
// as_strided_scatter.
#include <algorithm>
#include <string_view>

#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/shape/shape_ops.h"
#include "lazy/ops/shape/strided.h"

namespace lazuli::lazy {
namespace {

// x, seen in row-major order, with source, of these dims, at these strides.
Tensor WithPart(std::string_view op, const Tensor& x, const Tensor& source, const Dims& dims,
                Geometry part) {
  if (source.shape().dims() != absl::MakeConstSpan(dims)) {
    ThrowRecordError(op, InvalidArgument("source must have the dims (", Join(dims, ", "),
                                         ") of what it replaces, is ", source.shape()));
  }
  return Record(AsStridedScatterOp{std::move(part.strides), part.offset}, x, To(source, x.dtype()));
}

}  // namespace

Tensor SelectScatter(const Tensor& x, const Tensor& source, int64_t dim, int64_t index) {
  const auto [d, at] = CheckedSelect(x.shape(), dim, index);
  Dims dims = DimsOf(x.shape()), strides = ContiguousStrides(dims);
  const int64_t offset = at * strides[At(d)];
  dims.erase(dims.begin() + d);
  strides.erase(strides.begin() + d);
  return WithPart("select_scatter", x, source, dims, {std::move(strides), offset});
}

Tensor SliceScatter(const Tensor& x, const Tensor& source, int64_t dim,
                    std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
  constexpr char kOp[] = "slice_scatter";
  const int64_t d = NormalizeDim(kOp, dim, x.rank()), n = x.dim(d);
  if (step < 1) ThrowRecordError(kOp, InvalidArgument("step must be positive, is ", step));
  const auto place = [n](int64_t p, int64_t low) {
    return std::clamp(p < 0 ? p + n : p, low, std::max(low, n));
  };
  const int64_t from = place(start.value_or(0), 0), to = place(end.value_or(n), from);
  Dims dims = DimsOf(x.shape()), strides = ContiguousStrides(dims);
  const int64_t offset = from * strides[At(d)];
  dims[At(d)] = to > from ? (to - from - 1) / step + 1 : 0;
  strides[At(d)] *= step;
  return WithPart(kOp, x, source, dims, {std::move(strides), offset});
}

Tensor DiagonalScatter(const Tensor& x, const Tensor& source, int64_t offset, int64_t dim1,
                       int64_t dim2) {
  constexpr char kOp[] = "diagonal_scatter";
  const int64_t a = NormalizeDim(kOp, dim1, x.rank()), b = NormalizeDim(kOp, dim2, x.rank());
  if (a == b) ThrowRecordError(kOp, InvalidArgument("dims cannot be the same: ", dim1, ", ", dim2));
  const int64_t n = std::max<int64_t>(0, offset >= 0 ? std::min(x.dim(a), x.dim(b) - offset)
                                                     : std::min(x.dim(a) + offset, x.dim(b)));
  Dims dims = DimsOf(x.shape()), strides = ContiguousStrides(dims);
  const int64_t row = strides[At(a)], column = strides[At(b)];
  for (const int64_t d : {std::max(a, b), std::min(a, b)}) {
    dims.erase(dims.begin() + d);
    strides.erase(strides.begin() + d);
  }
  dims.push_back(n);
  strides.push_back(row + column);
  const int64_t first = n == 0 ? 0 : offset >= 0 ? offset * column : -offset * row;
  return WithPart(kOp, x, source, dims, {std::move(strides), first});
}

Tensor AsStridedScatter(const Tensor& x, const Tensor& source, absl::Span<const int64_t> size,
                        absl::Span<const int64_t> stride, std::optional<int64_t> storage_offset) {
  constexpr char kOp[] = "as_strided_scatter";
  const Geometry geometry = GeometryOf(x);
  if (!IsContiguous(x.shape().dims(), geometry.strides)) {
    ThrowRecordError(kOp, Unimplemented("takes an x whose elements lie in row-major order, not one "
                                        "with the strides (",
                                        Join(geometry.strides, ", "), ")"));
  }
  AsStridedView(x, size, stride, storage_offset);  // which refuses what lies outside
  const int64_t offset = storage_offset.value_or(geometry.offset) - geometry.offset;
  return WithPart(kOp, x, source, Dims(size.begin(), size.end()),
                  {Dims(stride.begin(), stride.end()), offset});
}

}  // namespace lazuli::lazy
