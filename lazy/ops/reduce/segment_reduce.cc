// Reductions of segments, which lengths or offsets give.
#include <limits>
#include <optional>
#include <string_view>

#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/shape/shape_ops.h"
#include "lazy/tensor/function_scope.h"

namespace lazuli::lazy {
namespace {

constexpr char kSegments[] = "segment_reduce";

struct SegmentReduction {
  std::string_view name, scattered;  // as scatter_reduce() calls it
  double empty;
};
constexpr SegmentReduction kReductions[] = {
    {"sum", "sum", 0},
    {"mean", "sum", std::numeric_limits<double>::quiet_NaN()},
    {"prod", "prod", 1},
    {"max", "amax", -std::numeric_limits<double>::infinity()},
    {"min", "amin", std::numeric_limits<double>::infinity()}};

const SegmentReduction& SegmentReductionOf(std::string_view name) {
  for (const SegmentReduction& r : kReductions) {
    if (r.name == name) return r;
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
  return Where(Lt(place, begin), Constant(static_cast<double>(ends.dim(d)), DType::kS64), segment);
}

}  // namespace

Tensor SegmentReduce(const Tensor& data, std::string_view reduce, const Tensor& lengths,
                     const Tensor& indices, const Tensor& offsets, int64_t axis, bool /*unsafe*/,
                     const std::optional<Number>& initial) {
  const SegmentReduction& reduction = SegmentReductionOf(reduce);
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
  const bool is_mean = reduction.name == "mean";
  const double first = initial ? initial->as_double() : is_mean ? 0 : reduction.empty;
  const Dims dims = Resized(data.shape(), d, ends.dim(d) + 1);
  const Tensor start = FullConstant(Shape(data.dtype(), dims), first, data.device());
  Tensor reduced = Before(ScatterReduce(start, d, index, data, reduction.scattered), d, 1);
  if (!is_mean) return reduced;
  const Tensor size = Reshape(lengths.defined() ? bounds : ends - Before(bounds, d, 1), segments);
  const Value none = Constant(initial ? first : reduction.empty, data.dtype());
  return Where(Gt(size, Constant(0, DType::kS64)), reduced / To(size, data.dtype()), none);
}

}  // namespace lazuli::lazy
