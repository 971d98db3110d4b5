// Other sizes of images: interpolation between elements, one dim after the other.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "ir/support/wrong_type.h"
#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/wide.h"

namespace lazuli::lazy {
namespace {

constexpr char kInterpolate[] = "interpolate";

// A dim from n to m elements; `scale`: how many of the result one is, if that was said.
struct Resizing {
  int64_t d, n, m;
  std::optional<double> scale;
};

Tensor Rounded64(const Tensor& positions, int64_t least, int64_t most) {
  const auto number = [](int64_t v) { return Constant(static_cast<double>(v), DType::kS64); };
  return ClampBetween(To(positions, DType::kS64), number(least), number(most));
}

// In which floats positions are computed: f32 as PyTorch's, but for f64.
DType PositionType(const Tensor& x) { return x.dtype() == DType::kF64 ? DType::kF64 : DType::kF32; }

double StepOf(const Resizing& r) {
  return r.scale ? 1 / *r.scale : static_cast<double>(r.n) / static_cast<double>(r.m);
}

// Whether the nearest elements are each of x equally often. T: in which positions are computed. This
// looks at each element, so the answer for a very long dim is no: selecting them gives the same.
template <class T>
bool RepeatsEach(const Resizing& r, bool exact) {
  constexpr int64_t kLongest = 1 << 20;
  if (r.m % r.n != 0 || r.m > kLongest) return false;
  const T step = static_cast<T>(StepOf(r)), first = exact ? T{0.5} : T{0};
  for (int64_t i = 0; i < r.m; ++i) {
    const auto from = static_cast<int64_t>(std::floor((static_cast<T>(i) + first) * step));
    if (std::min(from, r.n - 1) != i / (r.m / r.n)) return false;
  }
  return true;
}

Tensor Nearest(const Tensor& x, const Resizing& r, bool exact) {
  if (r.n == r.m) return x;
  const DType type = PositionType(x);
  if (type == DType::kF64 ? RepeatsEach<double>(r, exact) : RepeatsEach<float>(r, exact))
    return RepeatInterleave(x, r.m / r.n, r.d);
  const double step = StepOf(r);
  const Tensor to = Arange(r.m, type, x.device());
  const Tensor from = exact ? (to + 0.5) * step : to * step;
  return IndexSelect(x, r.d, Rounded64(Floor(from), 0, r.n - 1));
}

// Where each element of the result lies among those of x.
Tensor SourcePositions(const Tensor& x, const Resizing& r, bool align_corners) {
  const Tensor to = Arange(r.m, PositionType(x), x.device());
  if (align_corners)
    return to * (r.m > 1 ? static_cast<double>(r.n - 1) / static_cast<double>(r.m - 1) : 0);
  return (to + 0.5) * StepOf(r) - 0.5;
}

Tensor AlongDimension(const Tensor& weights, const Tensor& x, int64_t d) {
  Dims dims(At(x.rank()), 1);
  dims[At(d)] = weights.dim(0);
  return Reshape(To(weights, x.dtype()), dims);
}

Tensor Linear1(const Tensor& x, const Resizing& r, bool align_corners) {
  if (r.n == r.m && !r.scale) return x;
  Tensor at = SourcePositions(x, r, align_corners);
  at = Maximum(at, Constant(0, at.dtype()));
  const Tensor low = Rounded64(Floor(at), 0, r.n - 1);
  const Tensor high = Rounded64(low + 1.0, 0, r.n - 1);
  const Tensor share =
      ClampBetween(at - To(low, at.dtype()), Constant(0, at.dtype()), Constant(1, at.dtype()));
  return IndexSelect(x, r.d, low) * AlongDimension(1.0 - share, x, r.d) +
         IndexSelect(x, r.d, high) * AlongDimension(share, x, r.d);
}

// By the cubic convolution of Keys (1981) with a slope of -0.75.
Tensor Cubic(const Tensor& x, const Resizing& r, bool align_corners) {
  constexpr double kSlope = -0.75;
  const Tensor at = SourcePositions(x, r, align_corners), floor = Floor(at), t = at - floor;
  const auto near = [&](const Tensor& v) {
    return v * v * (v * (kSlope + 2) - (kSlope + 3)) + 1.0;
  };
  const auto far = [&](const Tensor& v) {
    return ((v * kSlope - 5 * kSlope) * v + 8 * kSlope) * v - 4 * kSlope;
  };
  const Tensor weights[] = {far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)};
  Tensor sum;
  for (int64_t i = 0; i < 4; ++i) {
    const Tensor from = Rounded64(floor + static_cast<double>(i - 1), 0, r.n - 1);
    const Tensor part = IndexSelect(x, r.d, from) * AlongDimension(weights[i], x, r.d);
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

// Throws for more weights than the host should hold while the op is recorded.
void CheckWeights(const Resizing& r, int64_t of_each) {
  constexpr int64_t kMost = int64_t{1} << 28;
  if (r.m <= kMost / of_each) return;
  ThrowRecordError(kInterpolate,
                   InvalidArgument("takes at most ", kMost, " weights for a dim, and ", of_each,
                                   " are wanted for each of the ", r.m, " elements of dim ", r.d));
}

// Where each element of the result comes from, and with which weights: `taps` of each, in turn.
struct WeightedPlaces {
  int64_t count;
  std::vector<int64_t> from;
  std::vector<double> weights;
};

// Those of the triangle or, if `cubic`, of Keys' convolution; places beyond the ends count for the
// elements there.
WeightedPlaces PlacesOf(const Resizing& r, bool cubic, bool align_corners) {
  constexpr double kSlope = -0.75;
  const auto weight = [&](double v) {
    v = std::abs(v);
    if (!cubic) return std::max(0.0, 1 - v);
    if (v < 1) return ((kSlope + 2) * v - (kSlope + 3)) * v * v + 1;
    return v < 2 ? (((v - 5) * v + 8) * v - 4) * kSlope : 0.0;
  };
  const auto n = static_cast<double>(r.n), m = static_cast<double>(r.m);
  const double step = align_corners ? (r.m > 1 ? (n - 1) / (m - 1) : 0)
                      : r.scale     ? 1 / *r.scale
                                    : n / m;
  WeightedPlaces taps{cubic ? 4 : 2, {}, {}};
  CheckWeights(r, taps.count);
  for (int64_t i = 0; i < r.m; ++i) {
    const auto to = static_cast<double>(i);
    double at = align_corners ? to * step : (to + 0.5) * step - 0.5;
    if (!cubic) at = std::max(at, 0.0);
    const int64_t floor = std::min(static_cast<int64_t>(std::floor(at)), r.n - 1);
    const double share = std::clamp(at - static_cast<double>(floor), 0.0, 1.0);
    const int64_t first = floor - taps.count / 2 + 1;
    const std::size_t row = taps.weights.size();
    const int64_t least = std::clamp<int64_t>(first, 0, r.n - 1);
    for (int64_t k = 0; k < taps.count; ++k) {
      taps.from.push_back(std::min(least + k, r.n - 1));
      taps.weights.push_back(0);
    }
    for (int64_t k = 0; k < taps.count; ++k) {
      const int64_t from = std::clamp<int64_t>(first + k, 0, r.n - 1);
      const int64_t past = k + 1 - taps.count / 2;
      taps.weights[row + At(from - least)] += weight(static_cast<double>(past) - share);
    }
  }
  return taps;
}

// Of uint8, as PyTorch and Pillow: weights are integers of 16 bits, and each dim is rounded.
Tensor FixedPoint(const Tensor& x, const Resizing& r, bool cubic, bool align_corners) {
  if (r.n == r.m) return x;
  const WeightedPlaces taps = PlacesOf(r, cubic, align_corners);
  const double most = *std::max_element(taps.weights.begin(), taps.weights.end());
  int64_t bits = 0;
  while (bits < 22 && std::floor(0.5 + most * std::ldexp(1, static_cast<int>(bits) + 1)) < 32768)
    ++bits;
  Tensor sum;
  for (int64_t k = 0; k < taps.count; ++k) {
    std::vector<int64_t> from;
    std::vector<int32_t> weights;
    for (std::size_t i = At(k); i < taps.from.size(); i += At(taps.count)) {
      from.push_back(taps.from[i]);
      weights.push_back(
          static_cast<int32_t>(std::round(std::ldexp(taps.weights[i], static_cast<int>(bits)))));
    }
    const auto constant = [&]<typename T>(std::vector<T>& values) {
      return FromLiteral(Literal::FromValues<T>(Dims{r.m}, std::span(values)), x.device());
    };
    const Tensor part =
        IndexSelect(x, r.d, constant(from)) * AlongDimension(constant(weights), x, r.d);
    sum = sum.defined() ? sum + part : part;
  }
  const auto number = [](double v) { return Constant(v, DType::kS32); };
  const Tensor half = sum + std::ldexp(1, static_cast<int>(bits) - 1);
  return ClampBetween(RightShift(half, number(static_cast<double>(bits))), number(0), number(255));
}

// The weights [n, m] of x's elements, each a mean over the elements that one of the result covers: of a
// triangle or, if `cubic`, of Keys' convolution with a slope of -0.5, as wide as that.
Tensor CoveringWeights(const Tensor& x, const Resizing& r, bool cubic, bool align_corners) {
  constexpr double kSlope = -0.5;
  const auto filter = [&](double v) {
    v = std::abs(v);
    if (!cubic) return std::max(0.0, 1 - v);
    if (v < 1) return ((kSlope + 2) * v - (kSlope + 3)) * v * v + 1;
    return v < 2 ? (((v - 5) * v + 8) * v - 4) * kSlope : 0.0;
  };
  const auto n = static_cast<double>(r.n), m = static_cast<double>(r.m);
  const double step = align_corners ? (r.m > 1 ? (n - 1) / (m - 1) : 0) : StepOf(r);
  const double width = std::max(step, 1.0), reach = (cubic ? 2 : 1) * width;
  CheckWeights(r, r.n);
  std::vector<double> weights(At(r.n) * At(r.m), 0);
  for (int64_t i = 0; i < r.m; ++i) {
    const double center = step * (static_cast<double>(i) + 0.5);
    const auto first = std::max<int64_t>(static_cast<int64_t>(center - reach + 0.5), 0);
    const auto end = std::min<int64_t>(static_cast<int64_t>(center + reach + 0.5), r.n);
    double sum = 0;
    for (int64_t j = first; j < end; ++j)
      sum += filter((static_cast<double>(j) - center + 0.5) / width);
    for (int64_t j = first; j < end; ++j) {
      const double share = filter((static_cast<double>(j) - center + 0.5) / width);
      weights[At(j) * At(r.m) + At(i)] = sum == 0 ? 0 : share / sum;
    }
  }
  const Tensor made =
      FromLiteral(Literal::FromValues<double>(Dims{r.n, r.m}, std::span(weights)), x.device());
  return To(made, x.dtype());
}

Tensor Antialiased(const Tensor& x, const Resizing& r, bool cubic, bool align_corners) {
  if (r.n == r.m && !r.scale) return x;
  const int64_t last = x.rank() - 1;
  const Tensor weights = CoveringWeights(x, r, cubic, align_corners);
  return Transpose(Matmul(Transpose(x, r.d, last), weights), r.d, last);
}

// The sizes that are asked for, and by which factors if those count.
std::vector<Resizing> Resizings(const Tensor& x, absl::Span<const int64_t> size,
                                absl::Span<const double> scale_factor, bool recompute) {
  const int64_t n = x.rank() - 2;
  const std::size_t given = size.empty() ? scale_factor.size() : size.size();
  if (given != 1 && given != At(n)) {
    ThrowRecordError(kInterpolate, InvalidArgument("takes a number for each of ", n, " dims of ",
                                                   x.shape(), ", not ", given));
  }
  std::vector<Resizing> all;
  for (int64_t i = 0; i < n; ++i) {
    const std::size_t at = given == 1 ? 0 : At(i);
    Resizing r{i + 2, x.dim(i + 2), 0, std::nullopt};
    if (size.empty()) {
      const double wanted = std::floor(static_cast<double>(r.n) * scale_factor[at]);
      if (!(std::abs(wanted) < 0x1p62)) {
        ThrowRecordError(kInterpolate, InvalidArgument("dim ", r.d, " would have ", wanted,
                                                       " elements by its scale_factor"));
      }
      r.m = static_cast<int64_t>(wanted);
      if (!recompute) r.scale = scale_factor[at];
    } else {
      r.m = size[at];
    }
    if (r.n < 1 || r.m < 1) {
      ThrowRecordError(kInterpolate,
                       InvalidArgument("input and output sizes should be greater than 0, are ", r.n,
                                       " and ", r.m, " of dim ", r.d));
    }
    all.push_back(r);
  }
  return all;
}

}  // namespace

Tensor Interpolate(const Tensor& x, absl::Span<const int64_t> size,
                   absl::Span<const double> scale_factor, std::string_view mode,
                   std::optional<bool> align_corners, std::optional<bool> recompute_scale_factor,
                   bool antialias) {
  if (size.empty() == scale_factor.empty()) {
    ThrowRecordError(
        kInterpolate,
        InvalidArgument(size.empty() ? "either size or scale_factor should be defined"
                                     : "only one of size or scale_factor should be defined"));
  }
  struct Mode {
    std::string_view name;
    int64_t rank;  // 0: any
    bool takes_corners;
  };
  constexpr Mode kModes[] = {
      {"nearest", 0, false}, {"nearest-exact", 0, false}, {"area", 0, false},  {"linear", 3, true},
      {"bilinear", 4, true}, {"trilinear", 5, true},      {"bicubic", 4, true}};
  const auto* found = std::find_if(std::begin(kModes), std::end(kModes),
                                   [&](const Mode& m) { return m.name == mode; });
  if (found == std::end(kModes) || x.rank() < 3 || x.rank() > 5 ||
      (found->rank != 0 && found->rank != x.rank())) {
    ThrowRecordError(kInterpolate,
                     Unimplemented("takes x [N, C, ...] of 3 to 5 dims, linear of 3, bilinear "
                                   "and bicubic of 4, trilinear of 5, nearest, nearest-exact "
                                   "and area of any; not ",
                                   x.shape(), " for ", mode));
  }
  if (align_corners && !found->takes_corners) {
    ThrowRecordError(kInterpolate,
                     InvalidArgument("align_corners option can only be set with the "
                                     "interpolating modes: linear | bilinear | bicubic | "
                                     "trilinear"));
  }
  if (antialias && (found->name != "bilinear" && found->name != "bicubic")) {
    ThrowRecordError(kInterpolate,
                     InvalidArgument("antialias can only be set with the modes bilinear and "
                                     "bicubic, not ",
                                     mode));
  }
  if (antialias && !IsFloat(x.dtype())) {
    ThrowRecordError(kInterpolate, Unimplemented("has no antialias for ", DTypeText(x.dtype())));
  }
  if (recompute_scale_factor.value_or(false) && !size.empty()) {
    ThrowRecordError(
        kInterpolate,
        InvalidArgument("recompute_scale_factor is not meaningful with an explicit size"));
  }
  const std::vector<Resizing> dims =
      Resizings(x, size, scale_factor, recompute_scale_factor.value_or(false));
  if (mode == "area") {
    Dims sizes;
    for (const Resizing& r : dims) sizes.push_back(r.m);
    if (x.rank() == 3) return AdaptiveAvgPool1d(x, sizes);
    return x.rank() == 4 ? AdaptiveAvgPool2d(x, Pair{sizes[0], sizes[1]})
                         : AdaptiveAvgPool3d(x, sizes);
  }
  const bool nearest = mode == "nearest" || mode == "nearest-exact";
  const bool corners = align_corners.value_or(false);
  if (x.dtype() == DType::kU8 && x.rank() == 4 && !nearest) {
    const bool cubic = mode == "bicubic";
    const Tensor wide = To(x, DType::kS32);
    const Tensor y = FixedPoint(FixedPoint(wide, dims[1], cubic, corners), dims[0], cubic, corners);
    return To(y, x.dtype());
  }
  if (!nearest && !IsFloat(x.dtype()))
    ThrowRecordError(kInterpolate, Unimplemented("is not implemented for ", DTypeText(x.dtype())));
  Tensor y = nearest ? x : Wide(x);
  for (const Resizing& r : dims) {
    y = antialias           ? Antialiased(y, r, mode == "bicubic", corners)
        : nearest           ? Nearest(y, r, mode == "nearest-exact")
        : mode == "bicubic" ? Cubic(y, r, corners)
                            : Linear1(y, r, corners);
  }
  return y.impl() == x.impl() ? Clone(x) : To(y, x.dtype());
}

}  // namespace lazuli::lazy
