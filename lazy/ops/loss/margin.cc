// Losses that ask for a margin: between classes, between pairs, and between distances.
#include <algorithm>

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/wide.h"
#include "lazy/ops/loss/reduction.h"
#include "lazy/tensor/function_scope.h"

namespace lazuli::lazy {
namespace {

// max(x, 0), whose gradient at 0 is that of the clamped; NaN stays.
Tensor Hinge(const Tensor& x) { return ClampMin(x, Number(0)); }
Tensor SumAlong(const Tensor& x, int64_t dim, bool keepdim = false) {
  const int64_t dims[] = {dim};
  return Sum(x, dims, keepdim);
}
// Where the target is this number, which its dtype need not hold: no bool is -1.
Tensor IsLabel(const Tensor& target, int64_t label) {
  const Tensor t = IsFloat(target.dtype()) ? target : To(target, DType::kS64);
  return Eq(t, Constant(static_cast<double>(label), t.dtype()));
}

}  // namespace

Tensor MarginRankingLoss(const Tensor& x1, const Tensor& x2, const Tensor& target, double margin,
                         Reduction reduction) {
  return Reduced(Hinge(Floating(-target * (x1 - x2)) + margin), reduction);
}

Tensor HingeEmbeddingLoss(const Tensor& in, const Tensor& target, double margin,
                          Reduction reduction) {
  const Tensor x = Floating(in), zero = FullConstant(x.shape(), 0, x.device());
  const Tensor far = Where(IsLabel(target, 1), zero, Hinge(margin - x));
  return Reduced(far + Where(IsLabel(target, -1), zero, x), reduction);
}

Tensor CosineEmbeddingLoss(const Tensor& x1, const Tensor& x2, const Tensor& target, double margin,
                           Reduction reduction) {
  if (target.rank() > 1 || x1.rank() != target.rank() + 1 || x2.rank() != x1.rank()) {
    ThrowRecordError("cosine_embedding_loss",
                     InvalidArgument("takes [N, d] twice and a target [N], or [d] twice and a "
                                     "target of rank 0, not ",
                                     x1.shape(), ", ", x2.shape(), " and ", target.shape()));
  }
  constexpr double kEps = 1e-12;
  const auto dot = [](const Tensor& a, const Tensor& b) { return Floating(SumAlong(a * b, -1)); };
  const Tensor product = dot(x1, x2), sizes = (dot(x1, x1) + kEps) * (dot(x2, x2) + kEps);
  const Tensor cosine = product / Sqrt(sizes);
  const Tensor zero = FullConstant(cosine.shape(), 0, cosine.device());
  const Tensor near = Where(IsLabel(target, 1), 1.0 - cosine, zero);
  return Reduced(near + Where(IsLabel(target, -1), Hinge(cosine - margin), zero), reduction);
}

Tensor SoftMarginLoss(const Tensor& x, const Tensor& target, Reduction reduction) {
  // In wide: the slope of the logarithm is a small difference where x is large.
  const Tensor in = -target * x;
  return Reduced(To(Log1p(Exp(Wide(in))), in.dtype()), reduction);
}

Tensor TripletMarginLoss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                         double margin, double p, double eps, bool swap, Reduction reduction) {
  if (anchor.rank() != positive.rank() || anchor.rank() != negative.rank()) {
    ThrowRecordError(
        "triplet_margin_loss",
        InvalidArgument("the anchor, positive, and negative tensors are expected to "
                        "have the same number of dimensions, have ",
                        anchor.shape(), ", ", positive.shape(), " and ", negative.shape()));
  }
  if (!(margin > 0)) {
    ThrowRecordError("triplet_margin_loss",
                     InvalidArgument("margin must be greater than 0, got ", margin));
  }
  const auto apart = [&](const Tensor& a, const Tensor& b) {
    return PairwiseDistance(a, b, p, eps, /*keepdim=*/false);
  };
  Tensor far = apart(anchor, negative);
  if (swap) far = Minimum(far, apart(positive, negative));
  return Reduced(Hinge(apart(anchor, positive) - far + margin), reduction);
}

Tensor MultilabelSoftMarginLoss(const Tensor& x, const Tensor& target, const Tensor& weight,
                                Reduction reduction) {
  Tensor loss = -(target * LogSigmoid(x) + (1.0 - target) * LogSigmoid(-x));
  if (weight.defined()) loss = loss * weight;
  const int64_t dims[] = {-1};
  return Reduced(Mean(loss, dims), reduction);
}

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

}  // namespace lazuli::lazy
