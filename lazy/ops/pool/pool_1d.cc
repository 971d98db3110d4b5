// Pooling of [N, C, L], as of images with one row.
#include "lazy/ops/core/functions.h"
#include "lazy/ops/pool/pool.h"

namespace lazuli::lazy {

Tensor MaxPool1d(const Tensor& x, int64_t kernel, std::optional<int64_t> stride, int64_t padding,
                 int64_t dilation, bool ceil_mode) {
  const Pair step{1, stride.value_or(kernel)};
  return Squeeze(MaxPool2d(AsImage("max_pool1d", x), {1, kernel}, step, {0, padding}, {1, dilation},
                           ceil_mode),
                 -2);
}

std::pair<Tensor, Tensor> MaxPool1dWithIndices(const Tensor& x, int64_t kernel,
                                               std::optional<int64_t> stride, int64_t padding,
                                               int64_t dilation, bool ceil_mode) {
  const Pair step{1, stride.value_or(kernel)};
  const auto [y, indices] = MaxPool2dWithIndices(AsImage("max_pool1d", x), {1, kernel}, step,
                                                 {0, padding}, {1, dilation}, ceil_mode);
  return {Squeeze(y, -2), Squeeze(indices, -2)};
}

Tensor AvgPool1d(const Tensor& x, int64_t kernel, std::optional<int64_t> stride, int64_t padding,
                 bool ceil_mode, bool count_include_pad) {
  const Pair step{1, stride.value_or(kernel)};
  return Squeeze(AvgPool2d(AsImage("avg_pool1d", x), {1, kernel}, step, {0, padding}, ceil_mode,
                           count_include_pad, std::nullopt),
                 -2);
}

}  // namespace lazuli::lazy
