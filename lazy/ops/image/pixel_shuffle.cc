// Channels that become pixels, pixels that become channels, and channels in another order.
#include "lazy/ops/core/functions.h"

namespace lazuli::lazy {
namespace {

int64_t Elements(absl::Span<const int64_t> dims) {
  int64_t n = 1;
  for (const int64_t size : dims) n *= size;
  return n;
}

}  // namespace

Tensor PixelShuffle(const Tensor& x, int64_t factor) {
  constexpr int64_t kMost = int64_t{1} << 20;  // no channels are divided by the square of more
  const int64_t r = x.rank();
  if (r < 3 || factor < 1 || factor > kMost || x.dim(r - 3) % (factor * factor) != 0) {
    ThrowRecordError("pixel_shuffle",
                     InvalidArgument("takes [..., C * r^2, H, W] for the factor r, not ", x.shape(),
                                     " for ", factor));
  }
  const int64_t c = x.dim(r - 3) / (factor * factor), h = x.dim(r - 2), w = x.dim(r - 1);
  Dims lead(x.shape().dims().begin(), x.shape().dims().end() - 3);
  const Tensor apart =
      Permute(Reshape(x, {Elements(lead), c, factor, factor, h, w}), {0, 1, 4, 2, 5, 3});
  lead.insert(lead.end(), {c, h * factor, w * factor});
  return Reshape(apart, lead);
}
Tensor PixelUnshuffle(const Tensor& x, int64_t factor) {
  const int64_t r = x.rank();
  if (r < 3 || factor < 1 || x.dim(r - 2) % factor != 0 || x.dim(r - 1) % factor != 0) {
    ThrowRecordError("pixel_unshuffle",
                     InvalidArgument("takes [..., C, H * r, W * r] for the factor r, not ",
                                     x.shape(), " for ", factor));
  }
  const int64_t c = x.dim(r - 3), h = x.dim(r - 2) / factor, w = x.dim(r - 1) / factor;
  Dims lead(x.shape().dims().begin(), x.shape().dims().end() - 3);
  const Tensor apart =
      Permute(Reshape(x, {Elements(lead), c, h, factor, w, factor}), {0, 1, 3, 5, 2, 4});
  lead.insert(lead.end(), {c * factor * factor, h, w});
  return Reshape(apart, lead);
}
Tensor ChannelShuffle(const Tensor& x, int64_t groups) {
  if (x.rank() < 3 || groups < 1 || x.dim(1) % groups != 0) {
    ThrowRecordError("channel_shuffle",
                     InvalidArgument("takes [N, C, ...] with groups that divide C, not ", x.shape(),
                                     " and ", groups));
  }
  const Tensor apart = Reshape(x, {x.dim(0), groups, x.dim(1) / groups, -1});
  return Reshape(Transpose(apart, 1, 2), x.shape().dims());
}

}  // namespace lazuli::lazy
