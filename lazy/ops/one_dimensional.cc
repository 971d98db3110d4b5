// Convolution and pooling of [N, C, L], as of images with one row.
#include "lazy/ops/functions.h"

namespace lazuli::lazy {
namespace {

// [N, C, L] as an image with one row.
Tensor AsImage(std::string_view op, const Tensor& x) {
  if (x.rank() != 2 && x.rank() != 3)
    ThrowRecordError(op, InvalidArgument("takes x [N, C, L], not ", x.shape()));
  return Unsqueeze(x, -2);
}

}  // namespace

Tensor Conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, int64_t stride,
              ConvPadding padding, int64_t dilation, int64_t groups) {
  if (weight.rank() != 3)
    ThrowRecordError("conv1d",
                     InvalidArgument("takes weight [O, C / groups, k], not ", weight.shape()));
  if (padding.size[0] != padding.size[1]) {
    ThrowRecordError("conv1d", InvalidArgument("takes one padding, not ", padding.size[0], " and ",
                                               padding.size[1]));
  }
  padding.size[0] = 0;
  const Conv2dOptions options{{1, stride}, padding, {1, dilation}, groups};
  return Squeeze(Conv2d(AsImage("conv1d", x), Unsqueeze(weight, -2), bias, options), -2);
}

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
