// Counts by place: histograms, and reductions of segments.
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include "ir/support/wrong_type.h"
#include "lazy/ops/functions.h"
#include "lazy/ops/require.h"
#include "lazy/ops/shape_ops.h"
#include "lazy/tensor/function_scope.h"

namespace lazuli::lazy {
namespace {

constexpr char kHistogram[] = "histogram";
constexpr char kSegments[] = "segment_reduce";

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

// --- segments

namespace {

struct Joining {
  std::string_view name, scattered;  // as scatter_reduce() calls it
  double empty;
};
constexpr Joining kJoinings[] = {{"sum", "sum", 0},
                                 {"mean", "sum", std::numeric_limits<double>::quiet_NaN()},
                                 {"prod", "prod", 1},
                                 {"max", "amax", -std::numeric_limits<double>::infinity()},
                                 {"min", "amin", std::numeric_limits<double>::infinity()}};

const Joining& JoiningOf(std::string_view name) {
  for (const Joining& j : kJoinings) {
    if (j.name == name) return j;
  }
  ThrowRecordError(kSegments,
                   InvalidArgument("reduce must be sum, mean, prod, max or min, is ", name));
}

// Lengths, or offsets, which are one more than segments, as s64.
Tensor SegmentBounds(const Tensor& data, const Tensor& given, int64_t axis) {
  bool fits = IsIntegral(given.dtype()) && given.rank() == axis + 1 && given.rank() <= data.rank();
  for (int64_t d = 0; fits && d < axis; ++d) fits = given.dim(d) == data.dim(d);
  if (fits) return To(Detach(given), DType::kS64);
  ThrowRecordError(
      kSegments, InvalidArgument("takes integers [..., segments] whose other dims are those of the "
                                 "data before the axis, not ",
                                 given.shape(), " for ", data.shape(), " along ", axis));
}

// The segment of each element along the axis [..., n], by where they end; one more takes what is in none.
Tensor SegmentOfEach(const Tensor& ends, const Tensor& begin, int64_t n) {
  const int64_t d = ends.rank() - 1, counted[] = {d};
  Dims row(At(d) + 1, 1);
  row[At(d)] = n;
  const Tensor place = Reshape(Positions({n}, 0, ends.device()), row);
  const Tensor segment = Sum(Ge(Unsqueeze(place, d), Unsqueeze(ends, -1)), counted);
  return Where(Lt(place, begin), Integer64(ends.dim(d)), segment);
}

}  // namespace

Tensor SegmentReduce(const Tensor& data, std::string_view reduce, const Tensor& lengths,
                     const Tensor& indices, const Tensor& offsets, int64_t axis, bool /*unsafe*/,
                     const std::optional<Number>& initial) {
  const Joining& joining = JoiningOf(reduce);
  if (!IsFloat(data.dtype()))
    ThrowRecordError(kSegments, Unimplemented("is not implemented for ", data.shape()));
  if (indices.defined()) ThrowRecordError(kSegments, Unimplemented("has no segments by indices"));
  if (lengths.defined() == offsets.defined())
    ThrowRecordError(kSegments, InvalidArgument("takes either lengths or offsets"));
  if (data.rank() == 0 || data.shape().num_elements() == 0)
    ThrowRecordError(kSegments, InvalidArgument("expected data with elements, not ", data.shape()));
  const int64_t d = NormalizeDim(kSegments, axis, data.rank());
  const FunctionScope function(kSegments);
  const Tensor bounds = SegmentBounds(data, lengths.defined() ? lengths : offsets, d);
  if (offsets.defined() && bounds.dim(d) < 1)
    ThrowRecordError(kSegments, InvalidArgument("takes an offset at least, not ", offsets.shape()));
  const Tensor ends = lengths.defined() ? Cumsum(bounds, d, std::nullopt) : After(bounds, d, 1);
  const Tensor begin = lengths.defined() ? FullConstant(Shape(DType::kS64), 0, data.device())
                                         : Narrow(bounds, d, 0, 1);
  Dims seen(At(data.rank()), 1), segments(At(data.rank()), 1);
  for (int64_t i = 0; i <= d; ++i) seen[At(i)] = data.dim(i), segments[At(i)] = ends.dim(i);
  const Tensor index =
      BroadcastTo(Reshape(SegmentOfEach(ends, begin, data.dim(d)), seen), data.shape().dims());
  const bool is_mean = joining.name == "mean";
  const double first = initial ? initial->as_double() : is_mean ? 0 : joining.empty;
  const Dims dims = Resized(data.shape(), d, ends.dim(d) + 1);
  const Tensor start = FullConstant(Shape(data.dtype(), dims), first, data.device());
  Tensor reduced = Before(ScatterReduce(start, d, index, data, joining.scattered), d, 1);
  if (!is_mean) return reduced;
  const Tensor size = Reshape(lengths.defined() ? bounds : ends - Before(bounds, d, 1), segments);
  const Value none = Constant(initial ? first : joining.empty, data.dtype());
  return Where(Gt(size, Integer64(0)), reduced / To(size, data.dtype()), none);
}

}  // namespace lazuli::lazy
