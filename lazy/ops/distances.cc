// Distances, and losses that are made of other functions.
#include <cmath>
#include <numbers>

#include "ir/support/wrong_type.h"
#include "lazy/ops/elementwise.h"
#include "lazy/ops/functions.h"
#include "lazy/ops/loss.h"
#include "lazy/ops/reduce.h"
#include "lazy/ops/wide.h"

namespace lazuli::lazy {
namespace {

Value NoLoss(const Tensor& x) { return Constant(0, x.dtype()); }
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

Tensor CosineSimilarity(const Tensor& in_x, const Tensor& in_y, int64_t dim, double eps) {
  const absl::StatusOr<DType> common = CommonType(in_x.shape(), in_y.shape());
  if (!common.ok()) ThrowRecordError("cosine_similarity", common.status());
  if (!IsFloat(*common)) {
    ThrowRecordError("cosine_similarity",
                     WrongType("expected common dtype to be floating point, yet "
                               "common dtype is ",
                               DTypeText(*common)));
  }
  const absl::StatusOr<Dims> dims = BroadcastDims(in_x.shape(), in_y.shape());
  if (!dims.ok()) ThrowRecordError("cosine_similarity", dims.status());
  const Tensor x = BroadcastTo(To(in_x, *common), *dims), y = BroadcastTo(To(in_y, *common), *dims);
  const int64_t along[] = {dim};
  const auto norm = [&](const Tensor& t) {
    const Tensor size = Norm(t, std::nullopt, along, /*keepdim=*/true, std::nullopt);
    // Not below eps, without a gradient there.
    return Where(Ge(size, Constant(eps, size.dtype())), size, Constant(eps, size.dtype()));
  };
  return SumAlong((x / norm(x)) * (y / norm(y)), dim);
}

Tensor PairwiseDistance(const Tensor& x, const Tensor& y, double p, double eps, bool keepdim) {
  const int64_t dims[] = {-1};
  return Norm(Floating(x - y) + eps, p, dims, keepdim, std::nullopt);
}

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

Tensor PoissonNllLoss(const Tensor& in, const Tensor& target, bool log_input, bool full, double eps,
                      Reduction reduction) {
  const Tensor x = Floating(in);
  Tensor loss = log_input ? Exp(x) - target * x : x - target * Log(x + eps);
  if (full) {
    // Stirling's approximation of log(target!).
    const Tensor t = Floating(target), some = Gt(t, Constant(1, t.dtype()));
    const Tensor safe = Where(some, t, Constant(1, t.dtype()));
    const Tensor more = safe * Log(safe) - safe + Log(safe * (2 * std::numbers::pi)) * 0.5;
    loss = loss + Where(some, more, NoLoss(more));
  }
  return Reduced(loss, reduction);
}

Tensor GaussianNllLoss(const Tensor& x, const Tensor& target, const Tensor& in_var, bool full,
                       double eps, Reduction reduction) {
  Tensor var = in_var;
  if (!SameDims(var.shape(), x.shape())) {
    const bool one_less = var.rank() + 1 == x.rank();
    if (one_less) var = Unsqueeze(var, -1);
    if (var.rank() != x.rank() || !BroadcastDims(var.shape(), x.shape()).ok())
      ThrowRecordError("gaussian_nll_loss",
                       InvalidArgument("var is of incorrect size: ", in_var.shape()));
  }
  const Value least = Constant(eps, var.dtype());
  var = var + Detach(Maximum(var, least) - var);  // which the gradient does not see
  const Tensor apart = x - target;
  Tensor loss = (Log(var) + apart * apart / var) * 0.5;
  if (full) loss = loss + 0.5 * std::log(2 * std::numbers::pi);
  return Reduced(loss, reduction);
}

Tensor MultilabelSoftMarginLoss(const Tensor& x, const Tensor& target, const Tensor& weight,
                                Reduction reduction) {
  Tensor loss = -(target * LogSigmoid(x) + (1.0 - target) * LogSigmoid(-x));
  if (weight.defined()) loss = loss * weight;
  const int64_t dims[] = {-1};
  return Reduced(Mean(loss, dims), reduction);
}

}  // namespace lazuli::lazy
