// Elements written to positions that are data, also where several go to one: scatter_reduce, index_reduce,
// put, masked_scatter.
#include <algorithm>
#include <string_view>

#include "ir/support/wrong_type.h"
#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/elementwise/elementwise.h"
#include "lazy/ops/index/index.h"
#include "lazy/tensor/function_scope.h"

namespace lazuli::lazy {
namespace {

void CheckSameType(std::string_view op, const Tensor& x, const Tensor& source) {
  if (x.dtype() == source.dtype()) return;
  ThrowRecordError(
      op, InvalidArgument("source ", source.shape(), " must have the dtype of x ", x.shape()));
}

}  // namespace

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
