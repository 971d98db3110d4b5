// Reductions, running reductions and orders that are made of others.
#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "ir/support/wrong_type.h"
#include "lazy/ops/functions.h"
#include "lazy/ops/reduce.h"
#include "lazy/ops/wide.h"

namespace lazuli::lazy {
namespace {

Tensor WithoutNan(const Tensor& x) {
  return IsFloat(x.dtype()) || IsComplex(x.dtype()) ? Where(Ne(x, x), Constant(0, x.dtype()), x)
                                                    : x;
}

Tensor After(const Tensor& x, int64_t dim, int64_t n) { return Narrow(x, dim, n, x.dim(dim) - n); }
Tensor Before(const Tensor& x, int64_t dim, int64_t n) { return Narrow(x, dim, 0, x.dim(dim) - n); }
Tensor Joined(const Tensor& x, const Tensor& y, int64_t dim) {
  const Tensor pieces[] = {x, y};
  return Cat(pieces, dim);
}

// f of each two prefixes that meet, the earlier one first, by doubling: log2(n) steps, each with its
// own gradient.
template <class F>
Tensor Running(const Tensor& x, int64_t dim, F&& f) {
  Tensor y = x;
  for (int64_t s = 1; s < x.dim(dim); s *= 2)
    y = Joined(Narrow(y, dim, 0, s), f(Before(y, dim, s), After(y, dim, s)), dim);
  return y;
}

std::pair<Tensor, Tensor> LikeDims(const Tensor& x, const std::pair<Tensor, Tensor>& results) {
  if (x.rank() != 0) return results;
  return {Reshape(results.first, {}), Reshape(results.second, {})};
}

// The last positions of what `wins` over what comes before it, or is NaN; and the elements.
std::pair<Tensor, Tensor> RunningExtremum(std::string_view op, const Tensor& in, int64_t dim,
                                          Tensor (*wins)(const Operand&, const Operand&)) {
  if (IsComplex(in.dtype()))
    ThrowRecordError(op, WrongType("complex numbers have no order: ", in.shape()));
  const Tensor x = WithDim(in);
  const int64_t d = NormalizeDim(op, dim, x.rank());
  Tensor best = Detach(x), at = Positions(x.shape().dims(), d, x.device());
  for (int64_t s = 1; s < x.dim(d); s *= 2) {
    const Tensor early = Before(best, d, s), late = After(best, d, s);
    const Tensor later = LogicalOr(Ne(late, late), LogicalAnd(Eq(early, early), wins(late, early)));
    best = Joined(Narrow(best, d, 0, s), Where(later, late, early), d);
    at = Joined(Narrow(at, d, 0, s), Where(later, After(at, d, s), Before(at, d, s)), d);
  }
  return LikeDims(in, {Gather(x, d, at), at});
}

// The k-th of the values sorted along d, or what is NaN there if `or_nan`; with its position.
std::pair<Tensor, Tensor> OfOrder(const Tensor& x, int64_t d, const Tensor& k, bool keepdim) {
  const auto [values, indices] = Sort(x, d, /*descending=*/false);
  const Tensor value = Gather(values, d, k), index = Gather(indices, d, k);
  if (keepdim) return {value, index};
  return {Squeeze(value, d), Squeeze(index, d)};
}

Tensor PositionAlong(const Tensor& x, int64_t d, int64_t position) {
  Dims dims(x.shape().dims().begin(), x.shape().dims().end());
  dims[static_cast<std::size_t>(d)] = 1;
  return FullConstant(Shape(DType::kS64, dims), static_cast<double>(position), x.device());
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
    return FullConstant(Shape(x.dtype()), std::numeric_limits<double>::quiet_NaN(), x.device());
  }
  return MedianAlong(op, Reshape(x, {-1}), 0, /*keepdim=*/false, nan_counts).first;
}

}  // namespace

Tensor Nansum(const Tensor& x, absl::Span<const int64_t> dims, bool keepdim,
              std::optional<DType> dtype) {
  return Sum(WithoutNan(x), dims, keepdim, dtype);
}

Tensor Nanmean(const Tensor& x, absl::Span<const int64_t> dims, bool keepdim,
               std::optional<DType> dtype) {
  const Tensor in = dtype ? To(x, *dtype) : x;
  if (!IsFloat(in.dtype()) && !IsComplex(in.dtype()))
    ThrowRecordError("nanmean", WrongType("takes floats, not ", in.shape()));
  const Tensor count = Sum(Eq(Detach(in), Detach(in)), dims, keepdim);
  return InWide(in, [&](const Tensor& wide) {
    const Tensor sum = Sum(WithoutNan(wide), dims, keepdim);
    return sum / To(count, sum.dtype());
  });
}

Tensor CountNonzero(const Tensor& x, absl::Span<const int64_t> dims) {
  return Sum(Ne(x, Constant(0, x.dtype())), dims, /*keepdim=*/false);
}

std::pair<Tensor, Tensor> Aminmax(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  Dims dims;
  if (dim) dims.push_back(*dim);
  return {Amin(x, dims, keepdim), Amax(x, dims, keepdim)};
}

std::pair<Tensor, Tensor> VarMean(const Tensor& x, absl::Span<const int64_t> dims,
                                  std::optional<double> correction, bool keepdim) {
  return {Var(x, dims, correction, keepdim), Mean(x, dims, keepdim)};
}
std::pair<Tensor, Tensor> StdMean(const Tensor& x, absl::Span<const int64_t> dims,
                                  std::optional<double> correction, bool keepdim) {
  return {Std(x, dims, correction, keepdim), Mean(x, dims, keepdim)};
}

std::pair<Tensor, Tensor> VarMean(const Tensor& x, Unbiased unbiased) {
  return {Var(x, unbiased), Mean(x)};
}
std::pair<Tensor, Tensor> StdMean(const Tensor& x, Unbiased unbiased) {
  return {Std(x, unbiased), Mean(x)};
}

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
  const Tensor first =
      FullConstant(Shape(DType::kPred, Narrow(at, d, 0, 1).shape().dims()), 1, x.device());
  const Tensor start = Where(Joined(first, differ, d), at, Constant(0, DType::kS64));
  const Tensor length = at - RunningExtremum("mode", start, d, &Ge).first;
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
  const Tensor share = Reshape(To(Detach(q), DType::kF64), {1, -1});
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

Tensor Cumprod(const Tensor& x, int64_t dim, std::optional<DType> dtype) {
  const bool floating = IsFloat(x.dtype()) || IsComplex(x.dtype());
  const Tensor in = To(x, dtype ? *dtype : floating ? x.dtype() : DType::kS64);
  const Tensor rows = WithDim(in);
  const int64_t d = NormalizeDim("cumprod", dim, rows.rank());
  const Tensor products = InWide(rows, [&](const Tensor& wide) {
    return Running(wide, d, [](const Tensor& a, const Tensor& b) { return a * b; });
  });
  const Tensor result = Reshape(products, x.shape().dims());
  return result.impl() == x.impl() ? Clone(result) : result;
}

Tensor Logcumsumexp(const Tensor& in, int64_t dim) {
  if (!IsFloat(in.dtype()))
    ThrowRecordError("logcumsumexp", WrongType("takes floats, not ", in.shape()));
  const Tensor rows = WithDim(in);
  const int64_t d = NormalizeDim("logcumsumexp", dim, rows.rank());
  const Tensor sums = InWide(rows, [&](const Tensor& wide) {
    return Running(wide, d, [](const Tensor& a, const Tensor& b) { return Logaddexp(a, b); });
  });
  const Tensor result = Reshape(sums, in.shape().dims());
  return result.impl() == in.impl() ? Clone(result) : result;
}

std::pair<Tensor, Tensor> Cummax(const Tensor& x, int64_t dim) {
  return RunningExtremum("cummax", x, dim, &Ge);
}
std::pair<Tensor, Tensor> Cummin(const Tensor& x, int64_t dim) {
  return RunningExtremum("cummin", x, dim, &Le);
}

Tensor Diff(const Tensor& x, int64_t n, int64_t dim, const Tensor& prepend, const Tensor& append) {
  if (x.rank() == 0)
    ThrowRecordError("diff", InvalidArgument("takes a tensor with a dim, not ", x.shape()));
  const int64_t d = NormalizeDim("diff", dim, x.rank());
  if (n < 0) ThrowRecordError("diff", InvalidArgument("n must not be negative, is ", n));
  if (n == 0) return Clone(x);
  Tensor y = x;
  if (prepend.defined()) y = Joined(prepend, y, d);
  if (append.defined()) y = Joined(y, append, d);
  for (int64_t i = 0; i < n && y.dim(d) > 0; ++i) {
    const Tensor after = After(y, d, 1), before = Before(y, d, 1);
    y = x.dtype() == DType::kPred ? LogicalXor(after, before) : after - before;
  }
  return y;
}

namespace {

// Twice the areas between neighbours along d.
Tensor Areas(const Tensor& y, const Tensor& width, int64_t d) {
  return (After(y, d, 1) + Before(y, d, 1)) * width;
}
// Of the points x, of rank 1 or that of y.
Tensor Widths(std::string_view op, const Tensor& y, const Tensor& x, int64_t d) {
  if (x.rank() == 1 && y.rank() > 1) {
    if (x.dim(0) != y.dim(d)) {
      ThrowRecordError(op, InvalidArgument("there must be one x value for each sample point: ",
                                           x.shape(), " along dim ", d, " of ", y.shape()));
    }
    Dims dims(static_cast<std::size_t>(y.rank()), 1);
    dims[static_cast<std::size_t>(d)] = x.dim(0) - 1;
    return Reshape(Diff(x, 1, -1, Tensor(), Tensor()), dims);
  }
  return Diff(x, 1, d - y.rank(), Tensor(), Tensor());
}
Tensor Integral(std::string_view op, const Tensor& y, const Tensor& x, int64_t dim, bool running) {
  const int64_t d = NormalizeDim(op, dim, y.rank());
  const bool none = y.dim(d) == 0;
  const Tensor areas = none ? Floating(y) : Areas(y, Widths(op, y, x, d), d) / 2.0;
  const int64_t dims[] = {d};
  return running ? Cumsum(areas, d) : Sum(areas, dims);
}
Tensor Integral(std::string_view op, const Tensor& y, double dx, int64_t dim, bool running) {
  const int64_t d = NormalizeDim(op, dim, y.rank());
  const Tensor floats = Floating(y);
  const Tensor areas =
      y.dim(d) == 0 ? floats : (After(floats, d, 1) + Before(floats, d, 1)) * (dx / 2);
  const int64_t dims[] = {d};
  return running ? Cumsum(areas, d) : Sum(areas, dims);
}

}  // namespace

Tensor Trapezoid(const Tensor& y, const Tensor& x, int64_t dim) {
  return Integral("trapezoid", y, x, dim, false);
}
Tensor Trapezoid(const Tensor& y, double dx, int64_t dim) {
  return Integral("trapezoid", y, dx, dim, false);
}
Tensor CumulativeTrapezoid(const Tensor& y, const Tensor& x, int64_t dim) {
  return Integral("cumulative_trapezoid", y, x, dim, true);
}
Tensor CumulativeTrapezoid(const Tensor& y, double dx, int64_t dim) {
  return Integral("cumulative_trapezoid", y, dx, dim, true);
}

}  // namespace lazuli::lazy
