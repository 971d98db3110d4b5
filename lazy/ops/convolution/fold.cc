// Windows of images as columns (unfold), and columns added up to images (fold).
#include <string_view>

#include "lazy/ops/convolution/convolution.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/pool/pool.h"

namespace lazuli::lazy {
namespace {

struct Columns {
  Dims kernel, dilation, padding, stride, blocks;
};

Columns CheckedColumns(std::string_view op, absl::Span<const int64_t> image, Columns c) {
  for (std::size_t i = 0; i < 2; ++i) {
    const int64_t room = image[i] + 2 * c.padding[i] - c.dilation[i] * (c.kernel[i] - 1) - 1;
    if (room < 0) {
      ThrowRecordError(
          op, InvalidArgument("windows of (", Join(c.kernel, ", "),
                              ") are larger than the padded image (", Join(image, ", "), ")"));
    }
    c.blocks.push_back(room / c.stride[i] + 1);
  }
  return c;
}

}  // namespace

Tensor Fold(const Tensor& x, absl::Span<const int64_t> output_size,
            absl::Span<const int64_t> kernel_size, absl::Span<const int64_t> dilation,
            absl::Span<const int64_t> padding, absl::Span<const int64_t> stride) {
  constexpr char kOp[] = "fold";
  if (x.rank() == 2) {
    return Squeeze(Fold(Unsqueeze(x, 0), output_size, kernel_size, dilation, padding, stride), 0);
  }
  const Dims image = Sizes(kOp, "output_size", output_size, 2, 0, 1);
  const Columns c = CheckedColumns(kOp, image,
                                   {Sizes(kOp, "kernel_size", kernel_size, 2, 0, 1),
                                    Sizes(kOp, "dilation", dilation, 2, 1, 1),
                                    Sizes(kOp, "padding", padding, 2, 0, 0),
                                    Sizes(kOp, "stride", stride, 2, 1, 1),
                                    {}});
  const int64_t taps = c.kernel[0] * c.kernel[1];
  if (x.rank() != 3 || x.dim(1) % taps != 0 || x.dim(2) != c.blocks[0] * c.blocks[1]) {
    ThrowRecordError(
        kOp, InvalidArgument("takes x [N, C * ", taps, ", ", c.blocks[0] * c.blocks[1],
                             "] for windows of (", Join(c.kernel, ", "), ") in an image of (",
                             Join(image, ", "), "), not ", x.shape()));
  }
  const int64_t channels = x.dim(1) / taps;
  const Tensor apart = Reshape(x, {x.dim(0), channels, taps, c.blocks[0], c.blocks[1]});
  Tensor sum;
  for (int64_t t = 0; t < taps; ++t) {
    Dims low(4, 0), high(4, 0), between(4, 0);
    for (std::size_t i = 0; i < 2; ++i) {
      const int64_t place = i == 0 ? t / c.kernel[1] : t % c.kernel[1];
      low[i + 2] = place * c.dilation[i] - c.padding[i];
      high[i + 2] = image[i] - low[i + 2] - (c.blocks[i] - 1) * c.stride[i] - 1;
      between[i + 2] = c.stride[i] - 1;
    }
    const Tensor part = PadZeros(Select(apart, 2, t), low, high, between);
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

Tensor Unfold(const Tensor& x, Pair kernel, Pair dilation, Pair padding, Pair stride) {
  if (x.rank() == 3) return Squeeze(Unfold(Unsqueeze(x, 0), kernel, dilation, padding, stride), 0);
  bool fits = x.rank() == 4;
  const Pool2dAttrs a{kernel, stride, padding, /*ceil_mode=*/false, dilation};
  for (std::size_t i = 0; i < 2; ++i) {
    fits = fits && kernel[i] > 0 && dilation[i] > 0 && stride[i] > 0 && padding[i] >= 0 &&
           x.dim(static_cast<int64_t>(i) + 2) + 2 * padding[i] >= Reach(a)[i];
  }
  if (!fits || x.dim(1) == 0 || x.dim(2) == 0 || x.dim(3) == 0) {
    ThrowRecordError(
        "unfold",
        InvalidArgument("takes images [N, C, H, W] that hold a window, not ", x.shape(),
                        " with kernel ", PairText(kernel), ", dilation ", PairText(dilation),
                        ", padding ", PairText(padding), " and stride ", PairText(stride)));
  }
  const Dims around{0, 0, padding[0], padding[1]}, none(4, 0);
  const Tensor places = Places(PadZeros(x, around, around, none), a);
  const int64_t columns = places.dim(2) * places.dim(3);
  return Reshape(Permute(places, {0, 1, 4, 2, 3}),
                 {x.dim(0), x.dim(1) * kernel[0] * kernel[1], columns});
}

}  // namespace lazuli::lazy
