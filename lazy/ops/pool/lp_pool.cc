// Norms of windows.
#include <cmath>

#include "lazy/ops/core/functions.h"
#include "lazy/ops/pool/pool.h"

namespace lazuli::lazy {
namespace {

// The norm of each window, from the means of powers. Where that is 0 it has no gradient, though the root's is infinite.
Tensor NormOfWindows(const Tensor& means, double norm_type, int64_t taps) {
  const Tensor sums = Relu(Abs(means)) * Sign(means) * static_cast<double>(taps);
  return PowNumber(sums, 1 / norm_type);
}

// The norm of infinite order of what `largest` finds in windows: the largest or the smallest size.
template <class F>
Tensor ExtremeOfWindows(const Tensor& x, double norm_type, F&& largest) {
  return norm_type > 0 ? largest(Abs(x)) : -largest(-Abs(x));
}

}  // namespace

Tensor LpPool1d(const Tensor& x, double norm_type, int64_t kernel, std::optional<int64_t> stride,
                bool ceil_mode) {
  if (std::isinf(norm_type)) {
    return ExtremeOfWindows(x, norm_type, [&](const Tensor& size) {
      return MaxPool1d(size, kernel, stride, 0, 1, ceil_mode);
    });
  }
  return NormOfWindows(
      AvgPool1d(PowNumber(x, norm_type), kernel, stride, 0, ceil_mode, /*count_include_pad=*/true),
      norm_type, kernel);
}
Tensor LpPool2d(const Tensor& x, double norm_type, Pair kernel, std::optional<Pair> stride,
                bool ceil_mode) {
  if (std::isinf(norm_type)) {
    return ExtremeOfWindows(x, norm_type, [&](const Tensor& size) {
      return MaxPool2d(size, kernel, stride, Pair{0, 0}, Pair{1, 1}, ceil_mode);
    });
  }
  return NormOfWindows(AvgPool2d(PowNumber(x, norm_type), kernel, stride, Pair{0, 0}, ceil_mode,
                                 /*count_include_pad=*/true, std::nullopt),
                       norm_type, kernel[0] * kernel[1]);
}
Tensor LpPool3d(const Tensor& x, double norm_type, absl::Span<const int64_t> kernel,
                absl::Span<const int64_t> stride, bool ceil_mode) {
  if (std::isinf(norm_type)) {
    return ExtremeOfWindows(x, norm_type, [&](const Tensor& size) {
      return MaxPool3d(size, kernel, stride, {}, {}, ceil_mode);
    });
  }
  const Dims size = OneForEachDim("lp_pool3d", "kernel", kernel, 3, {});
  return NormOfWindows(AvgPool3d(PowNumber(x, norm_type), size, stride, {}, ceil_mode,
                                 /*count_include_pad=*/true, std::nullopt),
                       norm_type, size[0] * size[1] * size[2]);
}

}  // namespace lazuli::lazy
