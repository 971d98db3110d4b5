// Largest elements of windows whose places are drawn.
#include <functional>
#include <numeric>
#include <string_view>

#include "lazy/ops/core/functions.h"
#include "lazy/ops/pool/pool.h"

namespace lazuli::lazy {
namespace {

// The first positions of `count` windows of `kernel` elements among `size`, drawn by u [N, C] in
// [0, 1): the last window ends at the end.
Tensor DrawnFirsts(const Tensor& u, int64_t count, int64_t kernel, int64_t size) {
  const Tensor row = Positions({count}, 0, u.device());
  const double apart =
      count > 1 ? static_cast<double>(size - kernel) / static_cast<double>(count - 1) : 0;
  const Tensor drawn = Unsqueeze(u, -1);
  const Tensor firsts =
      To((To(row, u.dtype()) + drawn) * apart, DType::kS64) - To(drawn * apart, DType::kS64);
  const Value last = Constant(static_cast<double>(size - kernel), DType::kS64);
  return Where(Eq(row, Constant(static_cast<double>(count - 1), DType::kS64)), last,
               ClampBetween(firsts, Constant(0, DType::kS64), last));
}

std::pair<Tensor, Tensor> FractionalMax(std::string_view op, const Tensor& x, const Dims& kernel,
                                        const Dims& output_size,
                                        absl::Span<const double> output_ratio, bool return_indices,
                                        const Tensor& random_samples) {
  const std::size_t n = kernel.size();
  const auto rank = static_cast<int64_t>(n);
  if (output_size.empty() == output_ratio.empty())
    ThrowRecordError(op, InvalidArgument("takes either output_size or output_ratio"));
  for (const double ratio : output_ratio) {
    if (!(ratio > 0 && ratio < 1)) {
      ThrowRecordError(op, InvalidArgument("output_ratio must be between 0 and 1, is ", ratio));
    }
  }
  if (x.rank() == rank + 1) {
    const auto [values, indices] = FractionalMax(op, Unsqueeze(x, 0), kernel, output_size,
                                                 output_ratio, return_indices, random_samples);
    return {Squeeze(values, 0), return_indices ? Squeeze(indices, 0) : Tensor()};
  }
  bool fits = x.rank() == rank + 2;
  for (int64_t d = 1; fits && d < x.rank(); ++d) fits = x.dim(d) > 0;
  if (!fits) {
    ThrowRecordError(
        op, InvalidArgument("takes x [N, C, ...] of ", n, " dims with elements, not ", x.shape()));
  }
  if (!output_ratio.empty() && output_ratio.size() != 1 && output_ratio.size() != n)
    ThrowRecordError(op, InvalidArgument("output_ratio must be one number or ", n));
  Dims out = output_size;
  for (std::size_t d = 0; d < n && !output_ratio.empty(); ++d) {
    out.push_back(static_cast<int64_t>(static_cast<double>(x.dim(static_cast<int64_t>(d) + 2)) *
                                       output_ratio[output_ratio.size() == 1 ? 0 : d]));
  }
  const Tensor u = random_samples.defined()
                       ? random_samples
                       : Rand({x.dim(0), x.dim(1), rank}, x.dtype(), x.device());
  Tensor places;  // [N, C, windows..., kernel...] in the image as one row
  for (std::size_t d = 0; d < n; ++d) {
    const int64_t size = x.dim(static_cast<int64_t>(d) + 2);
    if (out[d] + kernel[d] - 1 > size || out[d] < 1 || kernel[d] < 1) {
      ThrowRecordError(op, InvalidArgument("windows of (", Join(kernel, ", "), ") that give (",
                                           Join(out, ", "), ") do not fit into ", x.shape()));
    }
    // PyTorch draws for images along the last dim first.
    const int64_t sample = static_cast<int64_t>(n == 3 ? d : n - 1 - d);
    const Tensor firsts = DrawnFirsts(Select(u, -1, sample), out[d], kernel[d], size);
    Dims dims{x.dim(0), x.dim(1)};
    dims.resize(2 * n + 2, 1);
    dims[2 + d] = out[d];
    dims[2 + n + d] = kernel[d];
    const Tensor along =
        Reshape(Unsqueeze(firsts, -1) + Positions({kernel[d]}, 0, x.device()), dims);
    places = places.defined() ? places * static_cast<double>(size) + along : along;
  }
  const int64_t taps = std::accumulate(kernel.begin(), kernel.end(), int64_t{1}, std::multiplies());
  Dims windows{x.dim(0), x.dim(1)};
  windows.insert(windows.end(), out.begin(), out.end());
  windows.push_back(taps);
  Dims stretched(windows.begin(), windows.end() - 1);
  stretched.insert(stretched.end(), kernel.begin(), kernel.end());
  const Tensor rows = Reshape(
      BroadcastTo(places, stretched),
      {x.dim(0), x.dim(1), std::accumulate(out.begin(), out.end(), taps, std::multiplies())});
  const auto [values, at] =
      Max(Reshape(Gather(Flatten(x, 2), 2, rows), windows), -1, /*keepdim=*/true);
  Tensor indices;
  if (return_indices) indices = Squeeze(Gather(Reshape(rows, windows), -1, at), -1);
  return {Squeeze(values, -1), indices};
}

}  // namespace

std::pair<Tensor, Tensor> FractionalMaxPool2d(const Tensor& x, Pair kernel,
                                              std::optional<Pair> output_size,
                                              absl::Span<const double> output_ratio,
                                              bool return_indices, const Tensor& random_samples) {
  Dims size;
  if (output_size) size = {(*output_size)[0], (*output_size)[1]};
  return FractionalMax("fractional_max_pool2d", x, {kernel[0], kernel[1]}, size, output_ratio,
                       return_indices, random_samples);
}
std::pair<Tensor, Tensor> FractionalMaxPool3d(const Tensor& x, absl::Span<const int64_t> kernel,
                                              absl::Span<const int64_t> output_size,
                                              absl::Span<const double> output_ratio,
                                              bool return_indices, const Tensor& random_samples) {
  constexpr char kOp[] = "fractional_max_pool3d";
  Dims size;
  if (!output_size.empty()) size = OneForEachDim(kOp, "output_size", output_size, 3, {});
  return FractionalMax(kOp, x, OneForEachDim(kOp, "kernel", kernel, 3, {}), size, output_ratio,
                       return_indices, random_samples);
}

}  // namespace lazuli::lazy
