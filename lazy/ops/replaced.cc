// Tensors with other elements in some places: where a view would lie, where a mask is true, and at
// positions that several elements may go to.
#include <algorithm>
#include <string_view>

#include "ir/support/wrong_type.h"
#include "lazy/ops/elementwise.h"
#include "lazy/ops/functions.h"
#include "lazy/ops/index.h"
#include "lazy/ops/shape_ops.h"
#include "lazy/ops/strided.h"
#include "lazy/tensor/function_scope.h"

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

void CheckSameType(std::string_view op, const Tensor& x, const Tensor& source) {
  if (x.dtype() == source.dtype()) return;
  ThrowRecordError(
      op, InvalidArgument("source ", source.shape(), " must have the dtype of x ", x.shape()));
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

Tensor MaskedScatter(const Tensor& in, const Tensor& in_mask, const Tensor& source) {
  static constexpr char kOp[] = "masked_scatter";
  if (in_mask.dtype() != DType::kPred)
    ThrowRecordError(kOp, InvalidArgument("mask must be of bools, is ", in_mask.shape()));
  CheckSameType(kOp, in, source);
  const absl::StatusOr<Dims> dims = BroadcastDims(in.shape(), in_mask.shape());
  if (!dims.ok()) ThrowRecordError(kOp, dims.status());
  const FunctionScope function(kOp);
  const Tensor x = BroadcastTo(in, *dims), mask = BroadcastTo(in_mask, *dims);
  if (x.shape().num_elements() == 0) return Clone(x);
  const Tensor flat = Reshape(mask, {-1}), row = Reshape(source, {-1});
  const bool none = source.shape().num_elements() == 0;
  // Of no elements one stands for all, which nothing true may take.
  const Tensor elements = none ? FullConstant(Shape(x.dtype(), {1}), 0, x.device()) : row;
  const Tensor count = Cumsum(flat, 0);
  const Tensor at = Where(flat, none ? count : count - 1.0, Constant(0, DType::kS64));
  return Where(mask, Reshape(IndexSelect(elements, 0, at), *dims), x);
}

Tensor Put(const Tensor& x, const Tensor& index, const Tensor& source, bool accumulate) {
  static constexpr char kOp[] = "put";
  if (index.dtype() != DType::kS64)
    ThrowRecordError(kOp, WrongType("takes an index of s64, not ", index.shape()));
  CheckSameType(kOp, x, source);
  const int64_t n = x.shape().num_elements(), count = index.shape().num_elements();
  if (count != source.shape().num_elements()) {
    ThrowRecordError(kOp, InvalidArgument("source ", source.shape(), " and index ", index.shape(),
                                          " must have as many elements"));
  }
  if (count == 0) return Clone(x);
  if (n == 0)
    ThrowRecordError(kOp, OutOfRange("puts no elements into an empty tensor, ", x.shape()));
  const FunctionScope function(kOp);
  const Tensor flat = Reshape(index, {-1}), elements = Reshape(source, {-1});
  const Tensor from_end = Lt(flat, Constant(0, DType::kS64));
  const Tensor at = Where(from_end, flat + static_cast<double>(n), flat);
  const Tensor row = Reshape(x, {-1});
  return Reshape(accumulate ? IndexAdd(row, 0, at, elements) : IndexCopy(row, 0, at, elements),
                 x.shape().dims());
}

// --- several elements made one

namespace {

Tensor ZerosBeside(const Tensor& x) { return FullConstant(x.shape(), 0, x.device()); }

// Source in the dims of the index, which may be smaller.
Tensor Cropped(std::string_view op, const Tensor& source, const Tensor& index) {
  if (source.rank() != index.rank()) {
    ThrowRecordError(op, InvalidArgument("index ", index.shape(), " must have the rank of source ",
                                         source.shape()));
  }
  Tensor cropped = source;
  for (int64_t d = 0; d < index.rank(); ++d) {
    if (index.dim(d) > source.dim(d)) {
      ThrowRecordError(op, InvalidArgument("index ", index.shape(),
                                           " must be no larger than source ", source.shape()));
    }
    cropped = Narrow(cropped, d, 0, index.dim(d));
  }
  return cropped;
}

struct Reducing {
  FunctionName op;
  std::string_view reduce;
  bool include_self;
};

// Of x and source with dims, along d.
Tensor ReducedInto(const Reducing& r, const Tensor& x, int64_t d, const Tensor& index,
                   const Tensor& source) {
  CheckSameType(r.op, x, source);
  if (index.shape().num_elements() == 0) return Clone(x);
  if (x.dtype() == DType::kPred) {
    const std::string_view reduce = r.reduce == "sum" ? "amax" : r.reduce;
    const auto bytes = [](const Tensor& t) { return To(t, DType::kU8); };
    const Tensor y = ReducedInto({r.op, reduce, r.include_self}, bytes(x), d, index, bytes(source));
    return To(y, DType::kPred);
  }
  const FunctionScope function(r.op);
  const auto without_self = [&](const Tensor& t) {
    return r.include_self ? t : Scatter(t, d, index, ZerosBeside(source));
  };
  if (r.reduce == "sum") return ScatterAdd(without_self(x), d, index, source);
  if (r.reduce == "mean") {
    const Tensor ones = FullConstant(source.shape(), 1, x.device());
    const Tensor one = FullConstant(x.shape(), 1, x.device());
    const Tensor count = ScatterAdd(without_self(one), d, index, ones);
    const Tensor sum = ScatterAdd(without_self(x), d, index, source);
    return IsIntegral(x.dtype()) ? FloorDivide(sum, count) : sum / count;
  }
  const ScatterCombiner combiner = r.reduce == "prod"   ? ScatterCombiner::kProduct
                                   : r.reduce == "amax" ? ScatterCombiner::kLargest
                                                        : ScatterCombiner::kSmallest;
  return Record(ScatterReduceOp{d, combiner, r.include_self}, x, index, source);
}

}  // namespace

Tensor ScatterReduce(const Tensor& in, int64_t dim, const Tensor& in_index, const Tensor& source,
                     std::string_view reduce, bool include_self) {
  static constexpr char kOp[] = "scatter_reduce";
  constexpr std::string_view kKinds[] = {"sum", "prod", "mean", "amax", "amin"};
  if (std::find(std::begin(kKinds), std::end(kKinds), reduce) == std::end(kKinds)) {
    ThrowRecordError(kOp,
                     InvalidArgument("reduce must be sum, prod, mean, amax or amin, is ", reduce));
  }
  const Tensor x = WithDim(in), index = WithDim(in_index);
  const int64_t d = NormalizeDim(kOp, dim, x.rank());
  const Tensor y =
      ReducedInto({kOp, reduce, include_self}, x, d, index, Cropped(kOp, WithDim(source), index));
  return Reshape(y, in.shape().dims());
}

Tensor IndexReduce(const Tensor& in, int64_t dim, const Tensor& in_index, const Tensor& in_source,
                   std::string_view reduce, bool include_self) {
  static constexpr char kOp[] = "index_reduce";
  constexpr std::string_view kKinds[] = {"prod", "mean", "amax", "amin"};
  if (std::find(std::begin(kKinds), std::end(kKinds), reduce) == std::end(kKinds)) {
    ThrowRecordError(kOp, InvalidArgument("reduce must be prod, mean, amax or amin, is ", reduce));
  }
  const Tensor x = WithDim(in), index = WithDim(in_index), source = WithDim(in_source);
  const int64_t d = NormalizeDim(kOp, dim, x.rank());
  if (const absl::Status s = CheckRows(index.shape()); !s.ok()) ThrowRecordError(kOp, s);
  const Dims dims = Resized(x.shape(), d, index.dim(0));
  if (source.shape().dims() != absl::MakeConstSpan(dims)) {
    ThrowRecordError(kOp, InvalidArgument("source must have the dims (", Join(dims, ", "),
                                          ") for index ", index.shape(), ", is ", source.shape()));
  }
  Dims column(At(x.rank()), 1);
  column[At(d)] = index.dim(0);
  const Tensor each = BroadcastTo(Reshape(index, column), dims);
  return Reshape(ReducedInto({kOp, reduce, include_self}, x, d, each, source), in.shape().dims());
}

}  // namespace lazuli::lazy
