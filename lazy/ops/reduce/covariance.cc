// Covariance and correlation of observations.
#include <limits>
#include <string_view>

#include "ir/support/wrong_type.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/require.h"
#include "lazy/tensor/function_scope.h"

namespace lazuli::lazy {
namespace {

// The weight of each observation, [m], or undefined.
Tensor Weights(const Tensor& x, const Tensor& fweights, const Tensor& aweights) {
  constexpr char kOp[] = "cov";
  const auto check = [&](std::string_view what, const Tensor& w, bool fits) {
    if (w.rank() <= 1 && w.shape().num_elements() == x.dim(1) && fits) return;
    ThrowRecordError(kOp,
                     InvalidArgument(what, " must be ", what[0] == 'f' ? "integers" : "floats",
                                     ", one per observation of ", x.shape(), ", not ", w.shape()));
  };
  if (fweights.defined()) check("fweights", fweights, IsIntegral(fweights.dtype()));
  if (aweights.defined()) check("aweights", aweights, IsFloat(aweights.dtype()));
  const auto row = [&](const Tensor& w) {
    Record(ProbabilitiesOp{std::numeric_limits<double>::infinity(), 0}, To(Detach(w), DType::kF64));
    return Reshape(w, {-1});
  };
  if (!fweights.defined()) return aweights.defined() ? row(aweights) : Tensor();
  return aweights.defined() ? row(fweights) * row(aweights) : row(fweights);
}

}  // namespace

Tensor Cov(const Tensor& x, int64_t correction, const Tensor& fweights, const Tensor& aweights) {
  static constexpr char kOp[] = "cov";
  if (x.rank() > 2)
    ThrowRecordError(kOp, InvalidArgument("takes two dims or less, not ", x.shape()));
  if (x.dtype() == DType::kPred) ThrowRecordError(kOp, WrongType("takes no bools: ", x.shape()));
  const FunctionScope function(kOp);
  const Tensor rows = Floating(x.rank() < 2 ? Reshape(x, {1, -1}) : x);
  const Tensor weights = Weights(rows, fweights, aweights);
  const auto weighed = [&](const Tensor& t) { return weights.defined() ? t * weights : t; };
  // Of weights a number of their own dtype, as PyTorch promotes it.
  const DType real =
      weights.defined() && IsFloat(weights.dtype()) ? weights.dtype() : hlo::PartType(rows.dtype());
  const Tensor count = FullConstant(Shape(real), static_cast<double>(rows.dim(1)), x.device());
  const Tensor total = weights.defined() ? To(Sum(weights), real) : count;
  const Tensor mean = Sum(weighed(rows), {1}, /*keepdim=*/true) / total;
  const auto corrected = static_cast<double>(correction);
  const Tensor less = aweights.defined()
                          ? To(Sum(weights * Reshape(aweights, {-1})), real) * corrected / total
                          : FullConstant(Shape(real), corrected, x.device());
  const Tensor divisor = Maximum(total - less, Constant(0, real));
  const Tensor off = rows - mean;
  return Squeeze(Matmul(off, Conj(Transpose(weighed(off), 0, 1))) / divisor);
}

Tensor Corrcoef(const Tensor& x) {
  if (x.rank() > 2)
    ThrowRecordError("corrcoef", InvalidArgument("takes two dims or less, not ", x.shape()));
  const Tensor c = Cov(x, 1, Tensor(), Tensor());
  if (c.rank() == 0) return c / c;
  const Tensor spread = Sqrt(Real(DiagonalView(c, 0, 0, 1)));
  const Tensor r = c / Unsqueeze(spread, 1) / Unsqueeze(spread, 0);
  const auto limited = [](const Tensor& t) {
    return ClampBetween(t, Constant(-1, t.dtype()), Constant(1, t.dtype()));
  };
  return IsComplex(r.dtype()) ? Complex(limited(Real(r)), limited(Imag(r))) : limited(r);
}

}  // namespace lazuli::lazy
