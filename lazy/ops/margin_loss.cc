// Losses of margins between classes, distances of all rows, and bags of rows of a table.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "ir/support/wrong_type.h"
#include "lazy/ops/functions.h"
#include "lazy/ops/loss.h"
#include "lazy/ops/require.h"
#include "lazy/ops/shape_ops.h"
#include "lazy/tensor/function_scope.h"

namespace lazuli::lazy {
namespace {

// max(x, 0), of which nothing flows back at 0.
Tensor Positive0(const Tensor& x) { return Relu(x); }

}  // namespace

Tensor MultiMarginLoss(const Tensor& x, const Tensor& in_target, double p, double margin,
                       const Tensor& weight, Reduction reduction) {
  static constexpr char kOp[] = "multi_margin_loss";
  if (p != 1 && p != 2) ThrowRecordError(kOp, InvalidArgument("only p == 1 and p == 2 supported"));
  const bool one = x.rank() <= 1;
  const int64_t classes = x.rank() == 0 ? 1 : x.dim(x.rank() - 1);
  const Tensor rows = one ? Reshape(x, {1, classes}) : x;
  const Tensor target = Reshape(in_target, {-1});
  if (rows.rank() != 2 || classes == 0 || target.dim(0) != rows.dim(0) ||
      in_target.rank() > (one ? std::max<int64_t>(x.rank(), 0) : 1)) {
    ThrowRecordError(kOp, InvalidArgument("takes x [N, C] and a target [N], not ", x.shape(),
                                          " and ", in_target.shape()));
  }
  if (target.dtype() != DType::kS64)
    ThrowRecordError(kOp, InvalidArgument("the target must be of s64, is ", in_target.shape()));
  if (weight.defined() && (weight.rank() > 1 || weight.shape().num_elements() != classes))
    ThrowRecordError(kOp, InvalidArgument("weight must have a number for each of ", classes,
                                          " classes, is ", weight.shape()));
  const FunctionScope function(kOp);
  const Tensor own = Gather(rows, 1, Unsqueeze(target, 1));
  Tensor loss = Positive0(rows - own + margin);
  if (p == 2) loss = loss * loss;
  if (weight.defined())
    loss = loss * Reshape(IndexSelect(Reshape(weight, {-1}), 0, target), {-1, 1});
  const Tensor others = Ne(Positions(rows.shape().dims(), 1, x.device()), Unsqueeze(target, 1));
  const Tensor sum =
      Sum(Where(others, loss, Constant(0, loss.dtype())), {1}) / static_cast<double>(classes);
  return Reduced(one ? Reshape(sum, {}) : sum, reduction);
}

// The target of a row lists its classes up to the first that is negative.
Tensor MultilabelMarginLoss(const Tensor& x, const Tensor& in_target, Reduction reduction) {
  static constexpr char kOp[] = "multilabel_margin_loss";
  if (x.rank() > 2 || x.shape().dims() != in_target.shape().dims() ||
      (x.rank() > 0 && x.dim(x.rank() - 1) == 0)) {
    ThrowRecordError(kOp, InvalidArgument("takes x [N, C] and a target of its dims, not ",
                                          x.shape(), " and ", in_target.shape()));
  }
  if (in_target.dtype() != DType::kS64)
    ThrowRecordError(kOp, InvalidArgument("the target must be of s64, is ", in_target.shape()));
  const FunctionScope function(kOp);
  const int64_t classes = x.rank() == 0 ? 1 : x.dim(x.rank() - 1);
  const Dims plane{x.shape().num_elements() / classes, classes};
  const Tensor rows = Reshape(x, plane), target = Reshape(in_target, plane);
  const Value zero = Constant(0, DType::kS64);
  const Tensor ended = Gt(Cumsum(Lt(target, zero), 1), zero);
  const Tensor listed = LogicalNot(ended);
  const Tensor places = Where(listed, target, zero);
  const Tensor counts = FullConstant(Shape(DType::kS64, plane), 0, x.device());
  const Tensor is_target = Gt(ScatterAdd(counts, 1, places, To(listed, DType::kS64)), zero);
  const Tensor own = Unsqueeze(Gather(rows, 1, places), 2);
  const Tensor loss = Positive0(1.0 - own + Unsqueeze(rows, 1));  // [N, target, class]
  const Tensor counted = LogicalAnd(Unsqueeze(listed, 2), LogicalNot(Unsqueeze(is_target, 1)));
  const Tensor sum =
      Sum(Where(counted, loss, Constant(0, loss.dtype())), {1, 2}) / static_cast<double>(classes);
  return Reduced(x.rank() < 2 ? Reshape(sum, {}) : sum, reduction);
}

Tensor Pdist(const Tensor& x, double p) {
  static constexpr char kOp[] = "pdist";
  if (x.rank() != 2) ThrowRecordError(kOp, InvalidArgument("takes rows [n, d], not ", x.shape()));
  if (!IsFloat(x.dtype())) ThrowRecordError(kOp, InvalidArgument("takes floats, not ", x.shape()));
  if (!(p >= 0)) ThrowRecordError(kOp, InvalidArgument("only supports non-negative p values"));
  const FunctionScope function(kOp);
  const int64_t n = x.dim(0);
  const Tensor pairs = TriuIndices(n, n, 1, DType::kS64, x.device());
  const auto row = [&](int64_t i) { return IndexSelect(x, 0, Select(pairs, 0, i)); };
  return Norm(row(0) - row(1), p, {-1}, /*keepdim=*/false, std::nullopt);
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
