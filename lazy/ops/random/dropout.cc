// Dropout: of elements, of channels, and alpha dropout.
#include <cmath>
#include <string_view>

#include "ir/support/wrong_type.h"
#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/functions.h"

namespace lazuli::lazy {

Tensor Dropout(const Tensor& x, double probability) {
  if (!IsFloat(x.dtype())) ThrowRecordError("dropout", WrongType("takes floats, not ", x.shape()));
  if (!(probability >= 0 && probability <= 1)) {
    ThrowRecordError("dropout", InvalidArgument("p must be in [0, 1], is ", probability));
  }
  const Tensor keep =
      Ge(Rand(x.shape().dims(), DType::kF32, x.device()), Number(probability).Slot(DType::kF32));
  const double scale = probability < 1 ? 1 / (1 - probability) : 0;
  return Mul(Mul(x, To(keep, x.dtype())), Number(scale).Slot(x.dtype()));
}

namespace {

// Whether something is dropped.
bool Drops(std::string_view op, const Tensor& x, double p, bool train) {
  if (!(p >= 0 && p <= 1)) ThrowRecordError(op, InvalidArgument("p must be in [0, 1], is ", p));
  if (!train || p == 0) return false;
  if (!IsFloat(x.dtype())) ThrowRecordError(op, WrongType("takes floats, not ", x.shape()));
  return true;
}

// Ones for each of the channels, of which dropout makes the factors of all their elements.
Tensor OfChannels(std::string_view op, const Tensor& x) {
  if (x.rank() < 2) {
    ThrowRecordError(op, InvalidArgument("feature dropout requires at least 2 dimensions in the "
                                         "input: ",
                                         x.shape()));
  }
  Dims dims(At(x.rank()), 1);
  dims[0] = x.dim(0);
  dims[1] = x.dim(1);
  return FullConstant(Shape(x.dtype(), dims), 1, x.device());
}

// What is dropped becomes -1.758..., the limit of selu, and all is scaled to the mean and variance
// that it had.
Tensor AlphaDropped(const Tensor& x, const Tensor& like, double p) {
  constexpr double kLimit = -1.7580993408473766;
  if (p == 1) return x * 0.0;
  const Tensor kept =
      Ne(Dropout(FullConstant(like.shape(), 1, x.device()), p), Constant(0, like.dtype()));
  const double a = 1 / std::sqrt((kLimit * kLimit * p + 1) * (1 - p));
  return Where(kept, x * a, Constant(kLimit * a, x.dtype())) - kLimit * a * p;
}

}  // namespace

Tensor FeatureDropout(const Tensor& x, double p, bool train) {
  if (!Drops("feature_dropout", x, p, train)) return x;
  return p == 1 ? x * 0.0 : x * Dropout(OfChannels("feature_dropout", x), p);
}
Tensor AlphaDropout(const Tensor& x, double p, bool train) {
  if (!Drops("alpha_dropout", x, p, train)) return x;
  return p == 1 ? x * 0.0 : AlphaDropped(x, x, p);
}
Tensor FeatureAlphaDropout(const Tensor& x, double p, bool train) {
  if (!Drops("feature_alpha_dropout", x, p, train)) return x;
  return p == 1 ? x * 0.0 : AlphaDropped(x, OfChannels("feature_alpha_dropout", x), p);
}

Tensor NativeDropoutBackward(const Tensor& grad_output, const Tensor& mask, double scale) {
  return Floating(grad_output) * To(mask, Floating(grad_output).dtype()) * scale;
}

}  // namespace lazuli::lazy
