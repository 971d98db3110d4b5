// Tensors that are rolled, rotated and mirrored. flip is in shape_ops.cc.
#include "lazy/ops/core/functions.h"

namespace lazuli::lazy {

Tensor Roll(const Tensor& x, absl::Span<const int64_t> shifts, absl::Span<const int64_t> dims) {
  if (dims.empty() && shifts.size() == 1) {
    const int64_t first[] = {0};
    return Reshape(Roll(Reshape(x, {-1}), shifts, first), x.shape().dims());
  }
  if (shifts.size() != dims.size() || shifts.empty()) {
    ThrowRecordError("roll", InvalidArgument("shifts and dimensions must align: ", shifts.size(),
                                             " shifts and ", dims.size(), " dims"));
  }
  Tensor y = x;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const int64_t d = NormalizeDim("roll", dims[i], x.rank()), n = x.dim(d);
    if (n == 0) continue;
    const int64_t first = (n - shifts[i] % n) % n;
    if (first == 0) continue;
    const Tensor parts[] = {Narrow(y, d, first, n - first), Narrow(y, d, 0, first)};
    y = Cat(parts, d);
  }
  return y.impl() == x.impl() ? Clone(x) : y;
}

Tensor Rot90(const Tensor& x, int64_t k, absl::Span<const int64_t> dims) {
  const Dims plane = dims.empty() ? Dims{0, 1} : Dims(dims.begin(), dims.end());
  if (plane.size() != 2 || x.rank() < 2) {
    ThrowRecordError("rot90", InvalidArgument("expects two dims of a tensor that has them, not (",
                                              Join(plane, ", "), ") of ", x.shape()));
  }
  const int64_t a = NormalizeDim("rot90", plane[0], x.rank());
  const int64_t b = NormalizeDim("rot90", plane[1], x.rank());
  if (a == b)
    ThrowRecordError("rot90", InvalidArgument("a dim is named twice in (", Join(plane, ", "), ")"));
  const int64_t first[] = {a}, second[] = {b};
  switch (((k % 4) + 4) % 4) {
    case 1:
      return Transpose(Flip(x, second), a, b);
    case 2:
      return Flip(x, plane);
    case 3:
      return Transpose(Flip(x, first), a, b);
    default:
      return Clone(x);
  }
}

Tensor Fliplr(const Tensor& x) {
  if (x.rank() < 2)
    ThrowRecordError("fliplr", InvalidArgument("takes a rank of 2 or more, not ", x.shape()));
  return Flip(x, {1});
}
Tensor Flipud(const Tensor& x) {
  if (x.rank() < 1)
    ThrowRecordError("flipud", InvalidArgument("takes a rank of 1 or more, not ", x.shape()));
  return Flip(x, {0});
}

}  // namespace lazuli::lazy
