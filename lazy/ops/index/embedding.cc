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

constexpr char kBagOp[] = "embedding_bag";

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

void CheckEmbeddingBag(const Tensor& x, const Tensor& weight, const Tensor& offsets,
                       std::string_view mode, const Tensor& per_sample_weights,
                       bool include_last_offset) {
  if (mode != "sum" && mode != "mean" && mode != "max")
    ThrowRecordError(kBagOp, InvalidArgument("mode has to be one of sum, mean or max, is ", mode));
  const bool fits = x.rank() == 2 ? !offsets.defined()
                                  : x.rank() == 1 && offsets.defined() && offsets.rank() == 1;
  if (!fits || weight.rank() != 2 || !IsIntegral(x.dtype())) {
    ThrowRecordError(kBagOp,
                     InvalidArgument("takes indices [B, n], or [n] and offsets [B], and weight "
                                     "[rows, d], not ",
                                     x.shape(), " and ", weight.shape()));
  }
  if (offsets.defined() && !IsIntegral(offsets.dtype()))
    ThrowRecordError(kBagOp, WrongType("offsets are integers, not ", offsets.shape()));
  if (include_last_offset && offsets.defined() && offsets.dim(0) == 0)
    ThrowRecordError(kBagOp,
                     InvalidArgument("with include_last_offset there is one offset at least"));
  if (per_sample_weights.defined() &&
      (mode != "sum" || per_sample_weights.shape().dims() != x.shape().dims())) {
    ThrowRecordError(kBagOp,
                     InvalidArgument("per_sample_weights go with mode sum, and have the dims of "
                                     "the indices, not ",
                                     per_sample_weights.shape()));
  }
}

// Which bag each index belongs to, and whether it counts.
struct Bags {
  int64_t size;
  Tensor bag, counts;
};

// Of the indices x, which are `flat` in a row.
Bags BagsOf(const Tensor& x, const Tensor& flat, const Tensor& offsets, bool include_last_offset) {
  const int64_t count = flat.dim(0);
  const Tensor place = Arange(count, DType::kS64, x.device());
  Bags bags{0, {}, FullConstant(Shape(DType::kPred, {count}), 1, x.device())};
  if (x.rank() == 2) {
    bags.size = x.dim(0);
    const auto each = static_cast<double>(std::max<int64_t>(x.dim(1), 1));
    bags.bag = FloorDivide(place, Constant(each, DType::kS64));
    return bags;
  }
  bags.size = offsets.dim(0) - (include_last_offset ? 1 : 0);
  const Tensor checked = CheckedOffsets(offsets, count);
  const Tensor starts = Narrow(checked, 0, 0, bags.size);
  bags.bag = Searchsorted(starts, place, false, /*right=*/true, std::nullopt, Tensor()) - 1.0;
  if (include_last_offset) {
    const Tensor end = Narrow(checked, 0, bags.size, 1);
    bags.counts = LogicalAnd(bags.counts, Lt(place, BroadcastTo(end, {count})));
  }
  return bags;
}

// The rows found, [n, d], by bag.
Tensor Pooled(const Tensor& found, const Bags& bags, std::string_view mode) {
  const auto zeros = [&](int64_t rows) {
    return FullConstant(Shape(found.dtype(), {rows, found.dim(1)}), 0, found.device());
  };
  if (mode == "max") {
    // What does not count goes to a bag behind the others.
    const Tensor to =
        Where(bags.counts, bags.bag, Constant(static_cast<double>(bags.size), DType::kS64));
    return Narrow(IndexReduce(zeros(bags.size + 1), 0, to, found, "amax", /*include_self=*/false),
                  0, 0, bags.size);
  }
  Tensor sum = IndexAdd(zeros(bags.size), 0, bags.bag,
                        Where(Unsqueeze(bags.counts, 1), found, Constant(0, found.dtype())));
  if (mode == "sum") return sum;
  const Tensor sizes = IndexAdd(FullConstant(Shape(DType::kS64, {bags.size}), 0, found.device()), 0,
                                bags.bag, To(bags.counts, DType::kS64));
  const Tensor is_empty = Eq(sizes, Constant(0, DType::kS64));
  const Tensor divisor = To(Where(is_empty, Constant(1, DType::kS64), sizes), sum.dtype());
  return sum / Unsqueeze(divisor, 1);
}

}  // namespace

Tensor EmbeddingBag(const Tensor& x, const Tensor& weight, const Tensor& offsets,
                    std::optional<double> max_norm, double /*norm_type*/, bool /*by_freq*/,
                    std::string_view mode, bool /*sparse*/, const Tensor& per_sample_weights,
                    bool include_last_offset, std::optional<int64_t> padding_idx) {
  if (max_norm) ThrowRecordError(kBagOp, Unimplemented("has no max_norm"));
  CheckEmbeddingBag(x, weight, offsets, mode, per_sample_weights, include_last_offset);
  const FunctionScope function(kBagOp);
  const Tensor flat = Reshape(x, {-1});
  Bags bags = BagsOf(x, flat, offsets, include_last_offset);
  if (padding_idx) {
    const int64_t row = *padding_idx < 0 ? *padding_idx + weight.dim(0) : *padding_idx;
    bags.counts =
        LogicalAnd(bags.counts, Ne(flat, Constant(static_cast<double>(row), flat.dtype())));
  }
  Tensor found = IndexSelect(weight, 0, flat);
  if (per_sample_weights.defined()) found = found * Reshape(per_sample_weights, {-1, 1});
  if (flat.dim(0) > 0 && bags.size > 0) return Pooled(found, bags, mode);
  return FullConstant(Shape(found.dtype(), {bags.size, weight.dim(1)}), 0, x.device()) +
         Sum(weight) * 0.0;
}

}  // namespace lazuli::lazy
