// Distances between vectors: dist, cdist, pdist, pairwise_distance, cosine_similarity.
#include <algorithm>
#include <string>
#include <string_view>

#include "ir/support/wrong_type.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/elementwise/elementwise.h"
#include "lazy/tensor/function_scope.h"

namespace lazuli::lazy {

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
  return Sum((x / norm(x)) * (y / norm(y)), along);
}

Tensor PairwiseDistance(const Tensor& x, const Tensor& y, double p, double eps, bool keepdim) {
  const int64_t dims[] = {-1};
  return Norm(Floating(x - y) + eps, p, dims, keepdim, std::nullopt);
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

Tensor Dist(const Tensor& x, const Tensor& y, double p) {
  return Norm(x - y, p, {}, /*keepdim=*/false, std::nullopt);
}

Tensor Cdist(const Tensor& x, const Tensor& y, double p, const std::optional<std::string>& mode) {
  constexpr std::string_view kModes[] = {"use_mm_for_euclid_dist_if_necessary",
                                         "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"};
  if (mode && std::find(std::begin(kModes), std::end(kModes), *mode) == std::end(kModes))
    ThrowRecordError("cdist", InvalidArgument(*mode, " is not a valid value for compute_mode"));
  if (x.rank() < 2 || y.rank() < 2 || x.dim(x.rank() - 1) != y.dim(y.rank() - 1)) {
    ThrowRecordError("cdist", InvalidArgument("takes [..., n, d] and [..., m, d], not ", x.shape(),
                                              " and ", y.shape()));
  }
  if (!(p >= 0))
    ThrowRecordError("cdist", InvalidArgument("only supports non-negative p values, not ", p));
  const int64_t dims[] = {-1};
  return Norm(Unsqueeze(x, -2) - Unsqueeze(y, -3), p, dims, /*keepdim=*/false, std::nullopt);
}

}  // namespace lazuli::lazy
