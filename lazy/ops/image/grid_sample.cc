// Images at other places: each dim by itself says which elements lie around, and how near.
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include "ir/support/wrong_type.h"
#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/gradient_ops.h"
#include "lazy/ops/core/wide.h"

namespace lazuli::lazy {
namespace {

constexpr char kGrid[] = "grid_sample";

enum class SampleMode : uint8_t { kLinear, kNearest, kCubic };
enum class SamplePadding : uint8_t { kZeros, kBorder, kReflection };

struct Sampling {
  SampleMode between;
  SamplePadding outside;
  bool align_corners;
  // As in torch, a place of an image that is not finite has weights of NaN between elements, and one
  // of a volume is outside.
  bool is_image;
};

Value Like(const Tensor& x, double v) { return Constant(v, x.dtype()); }

// Moves a place outside of [0, most] to the nearer end, where the gradient is 0, and NaN to `most`, as
// PyTorch does.
Tensor Clipped(const Tensor& at, double most) {
  const Tensor inside = LogicalAnd(Gt(at, Like(at, 0)), Lt(at, Like(at, most)));
  return Where(inside, at, Where(Le(at, Like(at, 0)), Like(at, 0), Like(at, most)));
}

// Back and forth between two bounds, which are halves.
Tensor Reflected(const Tensor& at, double low, double high) {
  if (low == high) return at * 0.0;
  const double span = high - low;
  const Tensor off = at - low, size = Where(Lt(off, Like(at, 0)), -off, off);
  const Tensor flips = Floor(Detach(size) / span), rest = size - flips * span;
  const Tensor half = Detach(flips) * 0.5, is_even = Eq(half, Floor(half));
  return Where(is_even, rest + low, span - rest + low);
}

// Positions among `size` elements, made such that they are there, or as they are.
Tensor Padded(const Tensor& at, int64_t size, const Sampling& s) {
  const auto n = static_cast<double>(size);
  switch (s.outside) {
    case SamplePadding::kZeros:
      return at;
    case SamplePadding::kBorder:
      return Clipped(at, n - 1);
    case SamplePadding::kReflection:
      return Clipped(s.align_corners ? Reflected(at, 0, n - 1) : Reflected(at, -0.5, n - 0.5),
                     n - 1);
  }
  return at;
}

// What is NaN, or beyond any integer, is outside.
Tensor WithoutFar(const Tensor& at) {
  return Where(Lt(Abs(Detach(at)), Like(at, 0x1p30)), at, Like(at, -100));
}
Tensor Inside(const Tensor& at, int64_t size, const Sampling& s) {
  return WithoutFar(Padded(at, size, s));
}

// Numbers in [-1, 1] as positions among `size` elements.
Tensor Positioned(const Tensor& grid, int64_t size, bool align_corners) {
  const auto n = static_cast<double>(size);
  return align_corners ? (grid + 1.0) * 0.5 * (n - 1) : ((grid + 1.0) * n - 1.0) * 0.5;
}

// An element along one dim of each place, [N, P]: its position, which may be outside, and its weight.
struct Tap {
  Tensor at;      // whole numbers
  Tensor weight;  // undefined: 1
};

std::vector<Tap> LinearTaps(const Tensor& position, int64_t size, const Sampling& s) {
  Tensor at = Padded(position, size, s);
  if (!s.is_image) at = WithoutFar(at);
  const Tensor low = Floor(Detach(at)), share = at - low, place = WithoutFar(low);
  return {{place, 1.0 - share}, {place + 1.0, share}};
}

// By the cubic convolution of Keys (1981) with a slope of -0.75.
std::vector<Tap> CubicTaps(const Tensor& position, int64_t size, const Sampling& s) {
  constexpr double kSteep = -0.75;
  const Tensor low = Floor(Detach(position)), t = position - low;
  const auto near = [&](const Tensor& v) {
    return v * v * (v * (kSteep + 2) - (kSteep + 3)) + 1.0;
  };
  const auto far = [&](const Tensor& v) {
    return ((v * kSteep - 5 * kSteep) * v + 8 * kSteep) * v - 4 * kSteep;
  };
  const Tensor weights[] = {far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)};
  std::vector<Tap> taps;
  for (int i = 0; i < 4; ++i) taps.push_back({Inside(low + (i - 1.0), size, s), weights[i]});
  return taps;
}

std::vector<Tap> Taps(const Tensor& position, int64_t size, const Sampling& s) {
  switch (s.between) {
    case SampleMode::kLinear:
      return LinearTaps(position, size, s);
    case SampleMode::kNearest:
      return {{Round(Detach(Inside(position, size, s))), Tensor()}};
    case SampleMode::kCubic:
      return CubicTaps(position, size, s);
  }
  return {};
}

// The elements of x [N, C, ...] at one tap of each dim, times their weights: [N, C, P].
class Image {
 public:
  explicit Image(const Tensor& x) : x_(x), flat_(Flatten(x, 2, -1)) {}

  Tensor At(const std::vector<const Tap*>& taps) const {
    Tensor place, inside, weight;
    for (std::size_t d = 0; d < taps.size(); ++d) {
      const int64_t size = x_.dim(static_cast<int64_t>(d) + 2);
      const Tensor& at = taps[d]->at;
      const Tensor is_there =
          LogicalAnd(Ge(at, Like(at, 0)), Le(at, Like(at, static_cast<double>(size - 1))));
      const Tensor whole = To(Where(is_there, at, Like(at, 0)), DType::kS64);
      place = place.defined() ? place * static_cast<double>(size) + whole : whole;
      inside = inside.defined() ? LogicalAnd(inside, is_there) : is_there;
      if (!taps[d]->weight.defined()) continue;
      weight = weight.defined() ? weight * taps[d]->weight : taps[d]->weight;
    }
    const Dims dims{x_.dim(0), x_.dim(1), place.dim(1)};
    const Tensor elements = Gather(flat_, 2, BroadcastTo(Unsqueeze(place, 1), dims));
    const Tensor there = Where(Unsqueeze(inside, 1), elements, Like(x_, 0));
    return weight.defined() ? there * Unsqueeze(weight, 1) : there;
  }

 private:
  Tensor x_, flat_;
};

void CheckGrid(const Tensor& x, const Tensor& grid, const Sampling& s) {
  if (x.rank() != grid.rank() || (x.rank() != 4 && x.rank() != 5)) {
    ThrowRecordError(kGrid, InvalidArgument("expected 4D or 5D input and grid with same number of "
                                            "dimensions, but got input ",
                                            x.shape(), " and grid ", grid.shape()));
  }
  if (!IsFloat(x.dtype()) || x.dtype() != grid.dtype()) {
    ThrowRecordError(kGrid, InvalidArgument("expected input and grid to have the same dtype, of "
                                            "floats, but input is ",
                                            x.shape(), " and grid ", grid.shape()));
  }
  if (x.dim(0) != grid.dim(0) || grid.dim(grid.rank() - 1) != x.rank() - 2) {
    ThrowRecordError(
        kGrid,
        InvalidArgument("expected grid to have the batch of the input, and size ", x.rank() - 2,
                        " in its last dimension, but got ", grid.shape(), " for ", x.shape()));
  }
  for (int64_t d = 2; d < x.rank(); ++d) {
    if (x.dim(d) <= 0) {
      ThrowRecordError(kGrid,
                       InvalidArgument("expected input to have non-empty spatial dimensions, "
                                       "but got ",
                                       x.shape()));
    }
  }
  if (s.between == SampleMode::kCubic && x.rank() != 4) {
    ThrowRecordError(
        kGrid, InvalidArgument("bicubic interpolation only supports 4D input, not ", x.shape()));
  }
}

Tensor Sampled(const Tensor& x, const Tensor& grid, const Sampling& s) {
  CheckGrid(x, grid, s);
  const int64_t n = x.rank() - 2, batch = x.dim(0);
  int64_t places = 1;
  Dims dims{batch, x.dim(1)};
  for (int64_t d = 1; d <= n; ++d) {
    places *= grid.dim(d);
    dims.push_back(grid.dim(d));
  }
  const Tensor points = Reshape(grid, {batch, places, n});
  std::vector<std::vector<Tap>> taps;
  for (int64_t d = 0; d < n; ++d) {  // the last number of a point is of the first dim
    const int64_t size = x.dim(d + 2);
    taps.push_back(Taps(Positioned(Select(points, 2, n - 1 - d), size, s.align_corners), size, s));
  }
  const Image image(x);
  Tensor sum;
  std::vector<std::size_t> chosen(taps.size(), 0);
  for (bool more = true; more;) {
    std::vector<const Tap*> at;
    for (std::size_t d = 0; d < taps.size(); ++d) at.push_back(&taps[d][chosen[d]]);
    const Tensor part = image.At(at);
    sum = sum.defined() ? sum + part : part;
    std::size_t d = taps.size();
    while (d > 0 && ++chosen[d - 1] == taps[d - 1].size()) chosen[--d] = 0;
    more = d > 0;
  }
  return Reshape(sum, dims);
}

Tensor SampledWide(const Tensor& x, const Tensor& grid, const Sampling& s) {
  if (x.dtype() != grid.dtype()) CheckGrid(x, grid, s);
  const Tensor y = InWide(x, [&](const Tensor& wide) { return Sampled(wide, Wide(grid), s); });
  return s.between == SampleMode::kNearest ? Unaffected(y, grid) : y;
}

template <std::size_t kSize>
std::size_t OneOf(std::string_view what, const std::array<std::string_view, kSize>& names,
                  std::string_view name) {
  const auto* found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  ThrowRecordError(kGrid, InvalidArgument("expected ", what, " to be one of ", Join(names, ", "),
                                          ", but got: ", name));
}

Tensor SampledBy(std::string_view op, const Tensor& x, const Tensor& grid, int64_t between,
                 int64_t outside, bool align_corners, int64_t rank) {
  if (between < 0 || between > 2 || outside < 0 || outside > 2 || x.rank() != rank) {
    ThrowRecordError(op, InvalidArgument("takes x of ", rank, " dims and modes from 0 to 2, not ",
                                         x.shape(), ", ", between, " and ", outside));
  }
  return SampledWide(x, grid,
                     {static_cast<SampleMode>(between), static_cast<SamplePadding>(outside),
                      align_corners, rank == 4});
}

// n numbers from -1 to 1: the edges, or the middles of so many parts.
Tensor Span(int64_t n, const Tensor& like, bool align_corners) {
  const auto count = static_cast<double>(n);
  const Tensor place = Arange(n, like.dtype(), like.device());
  if (align_corners) return n == 1 ? place : place * (2 / (count - 1)) - 1.0;
  return (place * 2.0 + (1 - count)) / count;
}

}  // namespace

Tensor GridSample(const Tensor& x, const Tensor& grid, std::string_view mode,
                  std::string_view padding_mode, std::optional<bool> align_corners) {
  constexpr std::array<std::string_view, 3> kModes = {"bilinear", "nearest", "bicubic"};
  constexpr std::array<std::string_view, 3> kPaddings = {"zeros", "border", "reflection"};
  const std::size_t between = OneOf("mode", kModes, mode);
  const std::size_t outside = OneOf("padding_mode", kPaddings, padding_mode);
  return SampledWide(x, grid,
                     {static_cast<SampleMode>(between), static_cast<SamplePadding>(outside),
                      align_corners.value_or(false), x.rank() == 4});
}

Tensor GridSampler2d(const Tensor& x, const Tensor& grid, int64_t interpolation_mode,
                     int64_t padding_mode, bool align_corners) {
  return SampledBy("grid_sampler_2d", x, grid, interpolation_mode, padding_mode, align_corners, 4);
}
Tensor GridSampler3d(const Tensor& x, const Tensor& grid, int64_t interpolation_mode,
                     int64_t padding_mode, bool align_corners) {
  return SampledBy("grid_sampler_3d", x, grid, interpolation_mode, padding_mode, align_corners, 5);
}

Tensor AffineGrid(const Tensor& theta, absl::Span<const int64_t> size,
                  std::optional<bool> align_corners) {
  constexpr char kOp[] = "affine_grid";
  const auto rank = static_cast<int64_t>(size.size());
  if (!IsFloat(theta.dtype()))
    ThrowRecordError(kOp, InvalidArgument("expected theta of floats, not ", theta.shape()));
  if (rank != 4 && rank != 5) {
    ThrowRecordError(kOp,
                     Unimplemented("only supports 4D and 5D sizes, not (", Join(size, ", "), ")"));
  }
  const int64_t n = rank - 2;
  if (theta.rank() != 3 || theta.dim(0) != size[0] || theta.dim(1) != n || theta.dim(2) != n + 1) {
    ThrowRecordError(kOp,
                     InvalidArgument("expected theta [", size[0], ", ", n, ", ", n + 1, "], not ",
                                     theta.shape(), ", for size (", Join(size, ", "), ")"));
  }
  for (const int64_t s : size) {
    if (s <= 0)
      ThrowRecordError(kOp,
                       InvalidArgument("expected positive sizes, not (", Join(size, ", "), ")"));
  }
  const bool corners = align_corners.value_or(false);
  Dims dims(size.begin() + 2, size.end());
  Tensors points;  // x, y, z, 1
  int64_t count = 1;
  for (const int64_t s : dims) count *= s;
  for (int64_t d = n - 1; d >= 0; --d) {
    Dims along(At(n), 1);
    along[At(d)] = dims[At(d)];
    const Tensor span = Reshape(Span(dims[At(d)], theta, corners), along);
    points.push_back(Reshape(BroadcastTo(span, dims), {count, 1}));
  }
  points.push_back(FullConstant(Shape(theta.dtype(), {count, 1}), 1, theta.device()));
  const Tensor grid = Matmul(Cat(points, 1), Transpose(theta, 1, 2));
  Dims result{size[0]};
  result.insert(result.end(), dims.begin(), dims.end());
  result.push_back(n);
  return Reshape(grid, result);
}

}  // namespace lazuli::lazy
