// Questions about each element: whether it is NaN, infinite, finite or real, and whether it is close to
// another.
#include "ir/support/wrong_type.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/elementwise/composite.h"

namespace lazuli::lazy {
namespace {

Tensor Everywhere(bool value, const Tensor& like) {
  return FullConstant(Shape(DType::kPred, like.shape().dims()), value, like.device());
}

}  // namespace

Tensor Isnan(const Tensor& x) { return Ne(x, x); }
Tensor Isinf(const Tensor& x) {
  if (IsComplex(x.dtype())) return LogicalOr(Isinf(Real(x)), Isinf(Imag(x)));
  return IsFloat(x.dtype()) ? Eq(Abs(x), Infinite(x)) : Everywhere(false, x);
}
Tensor Isfinite(const Tensor& x) {
  if (IsComplex(x.dtype())) return LogicalAnd(Isfinite(Real(x)), Isfinite(Imag(x)));
  return IsFloat(x.dtype()) ? Lt(Abs(x), Infinite(x)) : Everywhere(true, x);
}

namespace {

Tensor IsInfinity(std::string_view op, const Tensor& x, double sign) {
  if (IsComplex(x.dtype())) ThrowRecordError(op, WrongType("takes real numbers, not ", x.shape()));
  if (IsFloat(x.dtype())) return Eq(x, Infinite(x, sign));
  return FullConstant(Shape(DType::kPred, x.shape().dims()), 0, x.device());
}

}  // namespace

Tensor Isposinf(const Tensor& x) { return IsInfinity("isposinf", x, 1); }
Tensor Isneginf(const Tensor& x) { return IsInfinity("isneginf", x, -1); }
Tensor Isreal(const Tensor& x) {
  if (!IsComplex(x.dtype()))
    return FullConstant(Shape(DType::kPred, x.shape().dims()), 1, x.device());
  const Tensor imag = Imag(x);
  return Eq(imag, Number0(imag));
}

Tensor Isclose(const Tensor& in_x, const Tensor& in_y, double rtol, double atol, bool equal_nan) {
  const Tensor x = Detach(in_x), y = Detach(in_y);
  if (x.dtype() != y.dtype()) {
    ThrowRecordError("isclose",
                     WrongType("takes operands of one dtype, not ", x.shape(), " and ", y.shape()));
  }
  if (!(rtol >= 0 && atol >= 0))
    ThrowRecordError("isclose",
                     InvalidArgument("tolerances must not be negative, are ", rtol, " and ", atol));
  Tensor close = Eq(x, y);
  if (equal_nan) close = LogicalOr(close, LogicalAnd(Ne(x, x), Ne(y, y)));
  if (rtol == 0 && atol == 0) return close;
  const Tensor fx = Floating(x), fy = Floating(y);
  const Tensor apart = Abs(fx - fy), bound = Abs(fy) * rtol + atol;
  return LogicalOr(close, LogicalAnd(Lt(apart, Infinite(apart)), Le(apart, bound)));
}

}  // namespace lazuli::lazy
