// Order statistics: median, k-th value, mode and quantiles.
#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "ir/support/wrong_type.h"
#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/gradient_ops.h"
#include "lazy/ops/reduce/reduce.h"
#include "lazy/ops/shape/shape_ops.h"

namespace lazuli::lazy {
namespace {

// The k-th of the values sorted along d, where NaN is last, and its position in x.
std::pair<Tensor, Tensor> OfOrder(const Tensor& x, int64_t d, const Tensor& k, bool keepdim) {
  const auto [values, indices] = Sort(x, d, /*descending=*/false);
  const Tensor value = Gather(values, d, k), index = Gather(indices, d, k);
  if (keepdim) return {value, index};
  return {Squeeze(value, d), Squeeze(index, d)};
}

// One position for each row of x along d.
Tensor PositionAlong(const Tensor& x, int64_t d, int64_t position) {
  const Shape rows(DType::kS64, Resized(x.shape(), d, 1));
  return FullConstant(rows, static_cast<double>(position), x.device());
}

// Of the numbers along d the middle one, the lower of two; NaN if there is one and it `counts`.
std::pair<Tensor, Tensor> MedianAlong(std::string_view op, const Tensor& in, int64_t dim,
                                      bool keepdim, bool nan_counts) {
  const Tensor x = WithDim(in);
  const int64_t d = NormalizeDim(op, dim, x.rank()), n = x.dim(d);
  if (n == 0)
    ThrowRecordError(op, OutOfRange("dim ", d, " of ", x.shape(), " is empty and has no median"));
  if (!IsFloat(x.dtype()))
    return LikeDims(in, OfOrder(x, d, PositionAlong(x, d, (n - 1) / 2), keepdim));
  const Tensor nan = Ne(Detach(x), Detach(x));  // which is sorted last
  const int64_t dims[] = {d};
  const Tensor nans = Sum(nan, dims, /*keepdim=*/true),
               numbers = Sub(Constant(static_cast<double>(n), DType::kS64), nans);
  Tensor k;
  if (nan_counts) {
    k = Where(Ne(nans, Constant(0, DType::kS64)), numbers, PositionAlong(x, d, (n - 1) / 2));
  } else {
    const Tensor half =
        FloorDivide(Sub(numbers, Constant(1, DType::kS64)), Constant(2, DType::kS64));
    k = Maximum(half, Constant(0, DType::kS64));
  }
  return LikeDims(in, OfOrder(x, d, k, keepdim));
}

Tensor MedianOfAll(std::string_view op, const Tensor& x, bool nan_counts) {
  if (x.shape().num_elements() == 0) {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    return Unaffected(FullConstant(Shape(x.dtype()), kNone, x.device()), x);
  }
  return WithSharedGradient(x, [&](const Tensor& t) {
    return MedianAlong(op, Reshape(t, {-1}), 0, /*keepdim=*/false, nan_counts).first;
  });
}

}  // namespace

Tensor Median(const Tensor& x) { return MedianOfAll("median", x, /*nan_counts=*/true); }
std::pair<Tensor, Tensor> Median(const Tensor& x, int64_t dim, bool keepdim) {
  return MedianAlong("median", x, dim, keepdim, /*nan_counts=*/true);
}
Tensor Nanmedian(const Tensor& x) { return MedianOfAll("nanmedian", x, /*nan_counts=*/false); }
std::pair<Tensor, Tensor> Nanmedian(const Tensor& x, int64_t dim, bool keepdim) {
  return MedianAlong("nanmedian", x, dim, keepdim, /*nan_counts=*/false);
}

std::pair<Tensor, Tensor> Kthvalue(const Tensor& in, int64_t k, int64_t dim, bool keepdim) {
  const Tensor x = WithDim(in);
  const int64_t d = NormalizeDim("kthvalue", dim, x.rank());
  if (k < 1 || k > x.dim(d)) {
    ThrowRecordError("kthvalue", OutOfRange("k is ", k, ", dim ", d, " of ", x.shape(), " has ",
                                            x.dim(d), " elements"));
  }
  return LikeDims(in, OfOrder(x, d, PositionAlong(x, d, k - 1), keepdim));
}

// The longest run of equal elements in order, the first of those.
std::pair<Tensor, Tensor> Mode(const Tensor& in, int64_t dim, bool keepdim) {
  const Tensor x = WithDim(in);
  const int64_t d = NormalizeDim("mode", dim, x.rank()), n = x.dim(d);
  if (n == 0)
    ThrowRecordError("mode", OutOfRange("dim ", d, " of ", x.shape(), " is empty and has no mode"));
  const auto sorted = Sort(Detach(x), d);
  const Tensor at = Positions(x.shape().dims(), d, x.device());
  // NaN, of which none is like another, comes first.
  const Tensor nans = Sum(Ne(Detach(x), Detach(x)), {d}, /*keepdim=*/true);
  const Tensor rotated = Remainder(at - nans, Constant(static_cast<double>(n), DType::kS64));
  const Tensor values = Gather(sorted.first, d, rotated);
  const Tensor indices = Gather(sorted.second, d, rotated);
  const Tensor differ = Ne(Before(values, d, 1), After(values, d, 1));
  const Tensor first = FullConstant(Shape(DType::kPred, Resized(at.shape(), d, 1)), 1, x.device());
  const Tensor start = Where(Cat({{first, differ}}, d), at, Constant(0, DType::kS64));
  const Tensor length = at - Cummax(start, d).first;
  const Tensor position = Gather(indices, d, Argmax(length, d, /*keepdim=*/true));
  const Tensor value = Gather(x, d, position);
  if (keepdim) return LikeDims(in, {value, position});
  return {Squeeze(value, d), Squeeze(position, d)};
}

namespace {

// [..., n] and positions in f64 [..., m] between its elements.
Tensor Interpolated(const Tensor& x, const Tensor& at, std::string_view interpolation) {
  const auto pick = [&](const Tensor& position) {
    return Gather(x, -1, To(position, DType::kS64));
  };
  if (interpolation == "lower") return pick(Floor(at));
  if (interpolation == "higher") return pick(Ceil(at));
  if (interpolation == "nearest") return pick(Round(at));
  const Tensor low = pick(Floor(at)), high = pick(Ceil(at));
  const Tensor share = interpolation == "midpoint" ? FullConstant(low.shape(), 0.5, x.device())
                                                   : To(at - Floor(at), x.dtype());
  return Lerp(low, high, share);
}

struct QuantileArguments {
  std::string_view op;
  std::optional<int64_t> dim;
  bool keepdim;
  std::string_view interpolation;
  bool nan_counts;
};

Tensor QuantilesOf(const Tensor& in, const Tensor& q, const QuantileArguments& a) {
  if (!IsFloat(in.dtype())) ThrowRecordError(a.op, WrongType("takes floats, not ", in.shape()));
  if (q.rank() > 1 || q.dtype() != in.dtype()) {
    ThrowRecordError(a.op,
                     InvalidArgument("q must be a number, or of rank 0 or 1 and the dtype of x ",
                                     in.shape(), ", is ", q.shape()));
  }
  constexpr std::string_view kKinds[] = {"linear", "lower", "higher", "midpoint", "nearest"};
  if (std::find(std::begin(kKinds), std::end(kKinds), a.interpolation) == std::end(kKinds)) {
    ThrowRecordError(a.op,
                     InvalidArgument("interpolation must be linear, lower, higher, midpoint or "
                                     "nearest, is ",
                                     a.interpolation));
  }
  Tensor x = WithDim(in);
  if (!a.dim) x = Reshape(x, {-1});
  const int64_t d = a.dim ? NormalizeDim(a.op, *a.dim, x.rank()) : 0;
  if (x.dim(d) == 0)
    ThrowRecordError(a.op, InvalidArgument("takes a tensor with elements, not ", in.shape()));
  Dims order, kept;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (i != d) order.push_back(i);
    if (i != d || a.keepdim) kept.push_back(i == d ? 1 : x.dim(i));
  }
  if (!a.dim || in.rank() == 0) kept = Dims(a.keepdim ? static_cast<std::size_t>(in.rank()) : 0, 1);
  order.push_back(d);
  const Tensor sorted = Sort(Permute(x, order), -1).first;
  const Tensor rows = Reshape(sorted, {-1, x.dim(d)}), is_nan = Ne(Detach(rows), Detach(rows));
  const Tensor nans = Sum(is_nan, {1}, /*keepdim=*/true);
  const double last = static_cast<double>(x.dim(d)) - 1;
  const Tensor share = Reshape(To(q, DType::kF64), {1, -1});
  Tensor at = share * last;
  if (a.nan_counts) {
    at = Where(Ne(nans, Constant(0, DType::kS64)), Constant(last, DType::kF64), at);
  } else {
    const Tensor numbers = To(last - nans, DType::kF64);
    at = share * Maximum(numbers, Constant(0, DType::kF64));
  }
  const Tensor found =
      Interpolated(rows, BroadcastTo(at, {rows.dim(0), at.dim(1)}), a.interpolation);
  Dims dims;
  if (q.rank() == 1) dims.push_back(q.dim(0));
  dims.insert(dims.end(), kept.begin(), kept.end());
  return Reshape(Transpose(found, 0, 1), dims);
}

Tensor QuantileOf(const Tensor& x, double q, const QuantileArguments& a) {
  if (!(q >= 0 && q <= 1)) ThrowRecordError(a.op, InvalidArgument("q must be in [0, 1], is ", q));
  return QuantilesOf(x, FullConstant(Shape(x.dtype()), q, x.device()), a);
}

}  // namespace

Tensor Quantile(const Tensor& x, double q, std::optional<int64_t> dim, bool keepdim,
                std::string_view interpolation) {
  return QuantileOf(x, q, {"quantile", dim, keepdim, interpolation, true});
}
Tensor Quantile(const Tensor& x, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                std::string_view interpolation) {
  return QuantilesOf(x, q, {"quantile", dim, keepdim, interpolation, true});
}
Tensor Nanquantile(const Tensor& x, double q, std::optional<int64_t> dim, bool keepdim,
                   std::string_view interpolation) {
  return QuantileOf(x, q, {"nanquantile", dim, keepdim, interpolation, false});
}
Tensor Nanquantile(const Tensor& x, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                   std::string_view interpolation) {
  return QuantilesOf(x, q, {"nanquantile", dim, keepdim, interpolation, false});
}

}  // namespace lazuli::lazy
