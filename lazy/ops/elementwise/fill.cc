// Elements replaced by a number: all of them, those under a mask, or those that are not finite.
#include "lazy/ops/core/functions.h"
#include "lazy/ops/elementwise/composite.h"

namespace lazuli::lazy {

Tensor MaskedFill(const Tensor& x, const Tensor& mask, const Tensor& value) {
  if (value.rank() != 0) {
    ThrowRecordError("masked_fill",
                     InvalidArgument("value must be a number or of rank 0, is ", value.shape()));
  }
  if (IsComplex(value.dtype()) && !IsComplex(x.dtype())) {
    ThrowRecordError("masked_fill", InvalidArgument("the value ", value.shape(),
                                                    " would be cut to ", DTypeText(x.dtype())));
  }
  return Where(mask, To(value, x.dtype()), x);
}
Tensor MaskedFill(const Tensor& x, const Tensor& mask, const Number& value) {
  return Where(mask, value.AsElement(x.dtype()), x);
}

Tensor NanToNum(const Tensor& x, std::optional<double> nan, std::optional<double> posinf,
                std::optional<double> neginf) {
  if (IsComplex(x.dtype())) {
    return Complex(NanToNum(Real(x), nan, posinf, neginf), NanToNum(Imag(x), nan, posinf, neginf));
  }
  if (!IsFloat(x.dtype())) return Clone(x);
  const double most = FiniteMax(x.dtype());
  const Tensor numbers = Where(Ne(x, x), Constant(nan.value_or(0), x.dtype()), x);
  const Tensor above =
      Where(Eq(x, Infinite(x)), Constant(posinf.value_or(most), x.dtype()), numbers);
  return Where(Eq(x, Infinite(x, -1)), Constant(neginf.value_or(-most), x.dtype()), above);
}

Tensor Fill(const Tensor& x, const Number& value) {
  return MaskedFill(x, FullConstant(Shape(DType::kPred), 1, x.device()), value);
}
Tensor Fill(const Tensor& x, const Tensor& value) {
  if (value.rank() != 0) {
    ThrowRecordError("fill", InvalidArgument("value must be of rank 0, is ", value.shape()));
  }
  return Clone(BroadcastTo(To(value, x.dtype()), x.shape().dims()));
}

}  // namespace lazuli::lazy
