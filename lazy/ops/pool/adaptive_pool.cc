// Adaptive pooling: window i of m reaches from floor(i n / m) to ceil((i + 1) n / m).
#include <algorithm>
#include <numeric>
#include <string_view>

#include "ir/support/wrong_type.h"
#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/wide.h"
#include "lazy/ops/pool/pool.h"

namespace lazuli::lazy {
namespace {

// The means along d of `to` windows: the i-th of n elements holds those from floor(i n / to) to ceil((i + 1) n / to). What is in
// none is left out and not multiplied by 0, which would make NaN of an infinity.
Tensor MeansAlong(const Tensor& x, int64_t d, int64_t to) {
  const int64_t n = x.dim(d);
  Dims dims(At(x.rank() - d) + 1, 1);
  dims[0] = to;
  const Tensor window = To(Positions(dims, 0, x.device()), DType::kF64) * static_cast<double>(n);
  dims = Dims(dims.size(), 1);
  dims[1] = n;
  const Tensor place = To(Positions(dims, 1, x.device()), DType::kF64);
  const auto divisor = static_cast<double>(to);
  const Tensor start = Floor(window / divisor);
  const Tensor end = Ceil((window + static_cast<double>(n)) / divisor);
  const Tensor inside = LogicalAnd(Ge(place, start), Lt(place, end));
  const Tensor chosen = Where(inside, Unsqueeze(x, d), Constant(0, x.dtype()));
  const int64_t along[] = {d + 1};
  return Sum(chosen, along) / To(Squeeze(end - start, 1), x.dtype());
}

// A result without elements, of no images: no array is made for its windows, however many they are.
Tensor OfNoImages(const Tensor& x, absl::Span<const int64_t> size) {
  Dims along(size.size()), dims(x.shape().dims().begin(), x.shape().dims().begin() + 2);
  std::iota(along.begin(), along.end(), 2);
  dims.insert(dims.end(), size.begin(), size.end());
  return BroadcastTo(Sum(x, along, /*keepdim=*/true), dims);
}

}  // namespace

Tensor AdaptiveAvgPool2d(const Tensor& x, Pair size) {
  if (x.rank() == 3) return Squeeze(AdaptiveAvgPool2d(Unsqueeze(x, 0), size), 0);  // one image
  if (x.rank() != 4 || size[0] < 1 || size[1] < 1) {
    ThrowRecordError("adaptive_avg_pool2d",
                     InvalidArgument("takes x [N, C, H, W] and a size from 1 on, not ", x.shape(),
                                     " and ", PairText(size)));
  }
  if (!IsFloat(x.dtype()))
    ThrowRecordError("adaptive_avg_pool2d", WrongType("takes floats, not ", x.shape()));
  if (x.dim(0) == 0 || x.dim(1) == 0) return OfNoImages(x, size);
  const int64_t h = x.dim(2), w = x.dim(3);
  if (h % size[0] == 0 && w % size[1] == 0) {
    const Pair kernel{h / size[0], w / size[1]};
    return MeansOfWindows(x, {.kernel = kernel, .stride = kernel}, true);
  }
  return InWide(
      x, [&](const Tensor& wide) { return MeansAlong(MeansAlong(wide, 2, size[0]), 3, size[1]); });
}

namespace {

// The most elements of a window: window i begins f / m elements before i n / m, where f is a multiple
// of the common divisor below m, and has ceil((f + n) / m).
int64_t LargestWindow(int64_t n, int64_t m) {
  if (m == 0) return 1;
  const int64_t rest = n - std::gcd(n, m);
  return 1 + rest / m + (rest % m == 0 ? 0 : 1);
}

// [m, k]: the positions in each window, k being the most; the last one several times.
Tensor WindowPositions(int64_t n, int64_t m, backend::Device device) {
  const Dims plane{m, LargestWindow(n, m)};
  const auto number = [](int64_t v) { return Constant(static_cast<double>(v), DType::kS64); };
  const Tensor row = Positions(plane, 0, device);
  const Tensor first = FloorDivide(row * static_cast<double>(n), number(m));
  const Tensor last =
      FloorDivide(row * static_cast<double>(n) + static_cast<double>(n + m - 1), number(m)) - 1.0;
  return Minimum(first + Positions(plane, 1, device), last);
}

Dims AdaptiveSizes(std::string_view op, const Tensor& x, absl::Span<const int64_t> size,
                   int64_t n) {
  Dims sizes(size.begin(), size.end());
  if (sizes.size() == 1) sizes.assign(At(n), size[0]);
  const bool fits = x.rank() == n + 2 && sizes.size() == At(n) &&
                    std::all_of(sizes.begin(), sizes.end(), [](int64_t s) { return s >= 0; });
  bool empty = false;
  for (int64_t d = 1; fits && d < x.rank(); ++d) empty = empty || x.dim(d) == 0;
  if (fits && !empty) return sizes;
  ThrowRecordError(op, InvalidArgument("takes x [N, C, ...] of ", n,
                                       " dims with elements and as many sizes from 0 on, not ",
                                       x.shape(), " and (", Join(size, ", "), ")"));
}

std::pair<Tensor, Tensor> AdaptiveMax(std::string_view op, const Tensor& in,
                                      absl::Span<const int64_t> size, int64_t n,
                                      bool return_indices) {
  if (in.rank() == n + 1) {
    const auto [values, indices] = AdaptiveMax(op, Unsqueeze(in, 0), size, n, return_indices);
    return {Squeeze(values, 0), return_indices ? Squeeze(indices, 0) : Tensor()};
  }
  const Dims sizes = AdaptiveSizes(op, in, size, n);
  if (!IsFloat(in.dtype()))
    ThrowRecordError(op, Unimplemented("is not implemented for ", in.shape()));
  if (in.dim(0) == 0) {
    const Tensor values = OfNoImages(in, sizes);
    return {values, return_indices ? To(values, DType::kS64) : Tensor()};
  }
  // Windows one dim after the other as new dims behind those of the result.
  Dims image(in.shape().dims().begin() + 2, in.shape().dims().end());
  int64_t count = 1;
  for (const int64_t d : image) count *= d;
  Tensor windows = in, places = Reshape(Positions({count}, 0, in.device()), image);
  const auto gather = [](const Tensor& t, int64_t d, const Tensor& positions) {
    const Tensor row = IndexSelect(t, d, Reshape(positions, {-1}));
    return MovedimView(UnflattenView(row, d, positions.shape().dims()), {d + 1}, {-1});
  };
  for (int64_t i = 0; i < n; ++i) {
    const Tensor positions = WindowPositions(in.dim(i + 2), sizes[At(i)], in.device());
    windows = gather(windows, i + 2, positions);
    places = gather(places, i, positions);
  }
  const auto flat = [n](const Tensor& t, int64_t lead) { return Flatten(t, lead + n, -1); };
  const auto [values, at] = Max(flat(windows, 2), -1, /*keepdim=*/true);
  if (!return_indices) return {Squeeze(values, -1), Tensor()};
  Dims stretched(at.shape().dims().begin(), at.shape().dims().end());
  const Tensor all = flat(places, 0);
  stretched.back() = all.dim(all.rank() - 1);
  const Tensor indices = Gather(BroadcastTo(all, stretched), -1, at);
  return {Squeeze(values, -1), Squeeze(indices, -1)};
}

}  // namespace

Tensor AdaptiveAvgPool1d(const Tensor& x, absl::Span<const int64_t> size) {
  if ((x.rank() != 2 && x.rank() != 3) || size.size() != 1) {
    ThrowRecordError("adaptive_avg_pool1d",
                     InvalidArgument("takes x [N, C, L] or [C, L] and one size, not ", x.shape(),
                                     " and (", Join(size, ", "), ")"));
  }
  return Squeeze(AdaptiveAvgPool2d(Unsqueeze(x, -2), Pair{1, size[0]}), -2);
}

Tensor AdaptiveAvgPool3d(const Tensor& x, absl::Span<const int64_t> size) {
  constexpr char kOp[] = "adaptive_avg_pool3d";
  if (x.rank() == 4) return Squeeze(AdaptiveAvgPool3d(Unsqueeze(x, 0), size), 0);
  const Dims m = AdaptiveSizes(kOp, x, size, 3);
  const Tensor slices = Reshape(x, {x.dim(0), x.dim(1) * x.dim(2), x.dim(3), x.dim(4)});
  const Tensor flat = AdaptiveAvgPool2d(slices, Pair{m[1], m[2]});
  const Tensor columns = Reshape(flat, {x.dim(0), x.dim(1), x.dim(2), m[1] * m[2]});
  const Tensor y = AdaptiveAvgPool2d(columns, Pair{m[0], m[1] * m[2]});
  return Reshape(y, {x.dim(0), x.dim(1), m[0], m[1], m[2]});
}

std::pair<Tensor, Tensor> AdaptiveMaxPool1d(const Tensor& x, absl::Span<const int64_t> size,
                                            bool return_indices) {
  return AdaptiveMax("adaptive_max_pool1d", x, size, 1, return_indices);
}
std::pair<Tensor, Tensor> AdaptiveMaxPool2d(const Tensor& x, absl::Span<const int64_t> size,
                                            bool return_indices) {
  return AdaptiveMax("adaptive_max_pool2d", x, size, 2, return_indices);
}
std::pair<Tensor, Tensor> AdaptiveMaxPool3d(const Tensor& x, absl::Span<const int64_t> size,
                                            bool return_indices) {
  return AdaptiveMax("adaptive_max_pool3d", x, size, 3, return_indices);
}

}  // namespace lazuli::lazy
