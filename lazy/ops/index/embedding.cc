// Rows of a table by their indices: embedding, and sums, means and maxima of bags of them.
#include <algorithm>
#include <string_view>

#include "ir/support/wrong_type.h"
#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/require.h"
#include "lazy/tensor/function_scope.h"

namespace lazuli::lazy {

Tensor Embedding(const Tensor& index, const Tensor& weight, std::optional<int64_t> padding_idx) {
  if (weight.rank() != 2) {
    ThrowRecordError("embedding", InvalidArgument("weight must have rank 2, is ", weight.shape()));
  }
  if (!IsIntegral(index.dtype())) {
    ThrowRecordError("embedding", InvalidArgument("indices must be integers, not ", index.shape()));
  }
  const int64_t rows = weight.dim(0);
  if (padding_idx && (*padding_idx < -rows || *padding_idx >= rows)) {
    ThrowRecordError("embedding", OutOfRange("padding_idx ", *padding_idx, " is out of range for ",
                                             rows, " rows"));
  }
  Dims dims = DimsOf(index.shape());
  dims.push_back(weight.dim(1));
  const Tensor flat = Reshape(index, {-1});
  const FunctionScope function("embedding");
  Tensor found = IndexSelect(weight, 0, flat);
  if (padding_idx) {
    const int64_t row = *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
    const Tensor padding = Eq(flat, Constant(static_cast<double>(row), flat.dtype()));
    found = Where(Unsqueeze(padding, 1), Detach(found), found);
  }
  return Reshape(found, dims);
}

namespace {

// Of the first index of each bag, s64: the first bag starts with the first index, and they lie in
// order.
Tensor CheckedOffsets(const Tensor& offsets, int64_t count) {
  const Tensor starts = To(offsets, DType::kS64);
  const int64_t bags = starts.dim(0);
  if (bags == 0) return starts;
  const Value zero = Constant(0, DType::kS64);
  const Tensor first = Narrow(starts, 0, 0, 1);
  const Tensor from_first = Require(starts, Requirement::kFirstBag, Ne(first, zero), first);
  const Tensor before = Cat(
      {FullConstant(Shape(DType::kS64, {1}), 0, starts.device()), Narrow(starts, 0, 0, bags - 1)},
      0);
  const Tensor bad =
      LogicalOr(Lt(starts, before), Gt(starts, Constant(static_cast<double>(count), DType::kS64)));
  return Require(from_first, Requirement::kBagsInOrder, bad, starts);
}

}  // namespace

Tensor EmbeddingBag(const Tensor& x, const Tensor& weight, const Tensor& offsets,
                    std::optional<double> max_norm, double /*norm_type*/, bool /*by_freq*/,
                    std::string_view mode, bool /*sparse*/, const Tensor& per_sample_weights,
                    bool include_last_offset, std::optional<int64_t> padding_idx) {
  static constexpr char kOp[] = "embedding_bag";
  if (max_norm) ThrowRecordError(kOp, Unimplemented("has no max_norm"));
  if (mode != "sum" && mode != "mean" && mode != "max")
    ThrowRecordError(kOp, InvalidArgument("mode has to be one of sum, mean or max, is ", mode));
  const bool fits = x.rank() == 2 ? !offsets.defined()
                                  : x.rank() == 1 && offsets.defined() && offsets.rank() == 1;
  if (!fits || weight.rank() != 2 || !IsIntegral(x.dtype())) {
    ThrowRecordError(kOp,
                     InvalidArgument("takes indices [B, n], or [n] and offsets [B], and weight "
                                     "[rows, d], not ",
                                     x.shape(), " and ", weight.shape()));
  }
  if (offsets.defined() && !IsIntegral(offsets.dtype()))
    ThrowRecordError(kOp, WrongType("offsets are integers, not ", offsets.shape()));
  if (include_last_offset && offsets.defined() && offsets.dim(0) == 0)
    ThrowRecordError(kOp, InvalidArgument("with include_last_offset there is one offset at least"));
  if (per_sample_weights.defined() &&
      (mode != "sum" || per_sample_weights.shape().dims() != x.shape().dims())) {
    ThrowRecordError(kOp,
                     InvalidArgument("per_sample_weights go with mode sum, and have the dims of "
                                     "the indices, not ",
                                     per_sample_weights.shape()));
  }
  const FunctionScope function(kOp);
  const Tensor flat = Reshape(x, {-1});
  const int64_t count = flat.dim(0);
  const int64_t bags = x.rank() == 2 ? x.dim(0) : offsets.dim(0) - (include_last_offset ? 1 : 0);
  const Tensor place = Arange(count, DType::kS64, x.device());
  Tensor end;  // [1]: of the last bag, if it is given
  const Value zero = Constant(0, DType::kS64);
  Tensor bag;
  if (x.rank() == 2) {
    const int64_t each = std::max<int64_t>(x.dim(1), 1);
    bag = FloorDivide(place, Constant(static_cast<double>(each), DType::kS64));
  } else {
    const Tensor checked = CheckedOffsets(offsets, count);
    const Tensor starts = Narrow(checked, 0, 0, bags);
    if (include_last_offset) end = Narrow(checked, 0, bags, 1);
    bag = Searchsorted(starts, place, false, /*right=*/true, std::nullopt, Tensor()) - 1.0;
  }
  const int64_t rows = weight.dim(0);
  Tensor counts = FullConstant(Shape(DType::kPred, {count}), 1, x.device());
  if (padding_idx) {
    const int64_t row = *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
    counts = Ne(flat, Constant(static_cast<double>(row), flat.dtype()));
  }
  if (end.defined()) counts = LogicalAnd(counts, Lt(place, BroadcastTo(end, {count})));
  Tensor found = IndexSelect(weight, 0, flat);
  if (per_sample_weights.defined()) found = found * Reshape(per_sample_weights, {-1, 1});
  const Tensor column = Unsqueeze(counts, 1);
  const Tensor none = FullConstant(Shape(found.dtype(), {bags, weight.dim(1)}), 0, x.device());
  if (count == 0 || bags == 0) return none + Sum(weight) * 0.0;
  if (mode == "max") {
    // What does not count goes to a bag behind the others.
    const Tensor extra =
        FullConstant(Shape(found.dtype(), {bags + 1, weight.dim(1)}), 0, x.device());
    const Tensor to = Where(counts, bag, Constant(static_cast<double>(bags), DType::kS64));
    return Narrow(IndexReduce(extra, 0, to, found, "amax", /*include_self=*/false), 0, 0, bags);
  }
  Tensor sum = IndexAdd(none, 0, bag, Where(column, found, Constant(0, found.dtype())));
  if (mode == "sum") return sum;
  const Tensor sizes = IndexAdd(FullConstant(Shape(DType::kS64, {bags}), 0, x.device()), 0, bag,
                                To(counts, DType::kS64));
  const Tensor divisor = To(Where(Eq(sizes, zero), Constant(1, DType::kS64), sizes), sum.dtype());
  return sum / Unsqueeze(divisor, 1);
}

}  // namespace lazuli::lazy
