// Histograms: counts of elements by bins.
#include <cmath>
#include <optional>

#include "ir/support/wrong_type.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/require.h"
#include "lazy/ops/shape/shape_ops.h"
#include "lazy/tensor/function_scope.h"

namespace lazuli::lazy {
namespace {

constexpr char kHistogram[] = "histogram";

Value Integer64(int64_t v) { return Constant(static_cast<double>(v), DType::kS64); }

void CheckHistogram(const Tensor& x, const Tensor& weight) {
  if (!IsFloat(x.dtype()))
    ThrowRecordError(kHistogram, Unimplemented("is not implemented for ", x.shape()));
  if (weight.defined() && !SameDims(weight.shape(), x.shape())) {
    ThrowRecordError(kHistogram, InvalidArgument("if weight tensor is provided it should have the "
                                                 "same shape as the input tensor, not ",
                                                 weight.shape(), " beside ", x.shape()));
  }
  if (weight.defined() && weight.dtype() != x.dtype()) {
    ThrowRecordError(kHistogram, WrongType("weight should have the dtype of the input, ", x.shape(),
                                           ", not ", weight.shape()));
  }
}

std::pair<Tensor, Tensor> CountedBetween(const Tensor& in, const Tensor& edges,
                                         const Tensor& in_weight, bool density) {
  const Tensor x = Reshape(Detach(in), {-1});
  const int64_t bins = edges.dim(0) - 1;
  const Tensor low = Select(edges, 0, 0), high = Select(edges, 0, bins);
  const Tensor inside = LogicalAnd(Ge(x, low), Le(x, high));
  const Tensor after =
      Searchsorted(edges, x, /*out_int32=*/false, /*right=*/true, std::nullopt, Tensor());
  const Tensor place = ClampBetween(after - 1.0, Integer64(0), Integer64(bins - 1));
  const Value zero = Constant(0, x.dtype()), one = Constant(1, x.dtype());
  const Tensor counts = in_weight.defined() ? Where(inside, Reshape(Detach(in_weight), {-1}), zero)
                                            : Where(inside, one, zero);
  const Tensor none = FullConstant(Shape(x.dtype(), {bins}), 0, x.device());
  Tensor hist = IndexAdd(none, 0, place, counts);
  if (density) hist = hist / Sum(hist) / (After(edges, 0, 1) - Before(edges, 0, 1));
  return {hist, edges};
}

}  // namespace

std::pair<Tensor, Tensor> Histogram(const Tensor& x, int64_t bins, absl::Span<const double> range,
                                    const Tensor& weight, bool density) {
  CheckHistogram(x, weight);
  if (bins <= 0) ThrowRecordError(kHistogram, InvalidArgument("bins must be > 0, is ", bins));
  if (!range.empty() && range.size() != 2) {
    ThrowRecordError(kHistogram,
                     InvalidArgument("range should have 2 elements, has ", range.size()));
  }
  const FunctionScope function(kHistogram);
  const auto number = [&](double v) { return FullConstant(Shape(x.dtype()), v, x.device()); };
  Tensor low = number(0), high = number(1);
  if (!range.empty()) {
    if (!std::isfinite(range[0]) || !std::isfinite(range[1]) || range[0] > range[1]) {
      ThrowRecordError(kHistogram, InvalidArgument("range [", range[0], ", ", range[1],
                                                   "] is not finite, or min is larger than max"));
    }
    low = number(range[0]);
    high = number(range[1]);
  } else if (x.shape().num_elements() > 0) {
    const Tensor finite = RequireAll(Detach(x), Requirement::kFiniteRange, Isfinite(Detach(x)));
    low = Amin(finite);
    high = Amax(finite);
  }
  const Tensor same = Eq(low, high);
  low = Where(same, low - 0.5, low);
  high = Where(same, high + 0.5, high);
  return CountedBetween(x, Linspace(low, high, bins + 1, x.dtype(), x.device()), weight, density);
}

std::pair<Tensor, Tensor> Histogram(const Tensor& x, const Tensor& bins, const Tensor& weight,
                                    bool density) {
  CheckHistogram(x, weight);
  if (bins.rank() != 1 || bins.dim(0) < 1) {
    ThrowRecordError(kHistogram,
                     InvalidArgument("bins tensor should have one dimension, and an edge "
                                     "at least, but got ",
                                     bins.shape()));
  }
  if (bins.dtype() != x.dtype()) {
    ThrowRecordError(kHistogram, WrongType("input tensor and bins tensors should have the same "
                                           "dtype, but got ",
                                           x.shape(), " and ", bins.shape()));
  }
  const FunctionScope function(kHistogram);
  return CountedBetween(x, Detach(bins), weight, density);
}

Tensor Histc(const Tensor& in, int64_t bins, const Number& low, const Number& high) {
  static constexpr char kOp[] = "histc";
  if (!IsFloat(in.dtype()))
    ThrowRecordError(kOp, Unimplemented("is not implemented for ", in.shape()));
  if (bins <= 0) ThrowRecordError(kOp, InvalidArgument("bins must be > 0, is ", bins));
  const double first = low.as_double(), last = high.as_double();
  if (!std::isfinite(first) || !std::isfinite(last))
    ThrowRecordError(kOp, InvalidArgument("range of [", first, ", ", last, "] is not finite"));
  if (first > last) ThrowRecordError(kOp, InvalidArgument("max must be larger than min"));
  const FunctionScope function(kOp);
  const Tensor x = Reshape(Detach(in), {-1});
  Tensor from = Full({}, low.As(x.dtype()), x.device());
  Tensor to = Full({}, high.As(x.dtype()), x.device());
  Tensor same;  // whether all of x is one number, which lies in the middle then
  if (first == last) {
    if (x.dim(0) > 0) {
      const Tensor finite = RequireAll(x, Requirement::kFiniteRange, Isfinite(x));
      std::tie(from, to) = std::pair(Amin(finite), Amax(finite));
    }
    same = Eq(from, to);
    from = from - To(same, x.dtype());
    to = to + To(same, x.dtype());
  }
  const auto count = static_cast<double>(bins);
  Tensor place = (x - from) * count / (to - from);
  // A huge number is not moved by 1.
  if (same.defined()) place = Where(same, Constant(count / 2, place.dtype()), place);
  const Tensor inside = LogicalAnd(Ge(x, from), Le(x, to));
  const Tensor safe = Where(inside, place, Constant(0, place.dtype()));
  const Tensor at = Minimum(To(safe, DType::kS64), Integer64(bins - 1));
  const Tensor none = FullConstant(Shape(DType::kS64, {bins}), 0, x.device());
  return To(IndexAdd(none, 0, at, To(inside, DType::kS64)), x.dtype());
}

}  // namespace lazuli::lazy
