// Arithmetic of two or three operands that no single opcode is: addcmul, addcdiv, lerp, heaviside; and positive.
#include "ir/support/wrong_type.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/wide.h"
#include "lazy/ops/elementwise/composite.h"

namespace lazuli::lazy {

Tensor Positive(const Tensor& x) {
  if (x.dtype() == DType::kPred)
    ThrowRecordError("positive", WrongType("takes no pred, but ", x.shape()));
  return x;
}

Tensor Heaviside(const Tensor& x, const Tensor& values) {
  if (x.dtype() != values.dtype()) {
    ThrowRecordError("heaviside", WrongType("takes values of the dtype of x, ", x.shape(), ", not ",
                                            values.shape()));
  }
  const Tensor detached = Detach(x);
  return Where(Eq(detached, Number0(x)), Detach(values), To(Gt(detached, Number0(x)), x.dtype()));
}

namespace {

bool IsOfIntegers(const Tensor& x) { return IsIntegral(x.dtype()) || x.dtype() == DType::kPred; }

// f of the three in their common dtype; in f32 where all are of 16 bits.
template <class F>
Tensor InWideTogether(std::string_view op, const Tensor& x, const Tensor& first,
                      const Tensor& second, F&& f) {
  const DType common = Together(op, Together(op, x.shape(), first.shape()), second.shape()).dtype();
  const auto wide = [&](const Tensor& t) { return Wide(To(t, common)); };
  return To(f(wide(x), wide(first), wide(second)), common);
}

// Integers take a number's whole part, as PyTorch's loops do.
Tensor Times(const Tensor& x, const Number& value) {
  if (IsOfIntegers(x) && !value.is_whole() && !value.is_complex())
    return x * Number(static_cast<int64_t>(value.as_double()));
  return x * value;
}

}  // namespace

Tensor Addcmul(const Tensor& x, const Tensor& first, const Tensor& second, const Number& value) {
  return InWideTogether("addcmul", x, first, second,
                        [&](const Tensor& a, const Tensor& b, const Tensor& c) {
                          return Add(a, Mul(Times(b, value), c));
                        });
}
Tensor Addcdiv(const Tensor& x, const Tensor& first, const Tensor& second, const Number& value) {
  if (IsOfIntegers(first) && IsOfIntegers(second)) {
    ThrowRecordError("addcdiv", WrongType("divides no integers by integers: ", first.shape(),
                                          " by ", second.shape(), "; convert one with to()"));
  }
  return InWideTogether(
      "addcdiv", x, first, second,
      [&](const Tensor& a, const Tensor& b, const Tensor& c) { return Add(a, Div(b * value, c)); });
}

namespace {

// From the nearer end, so that a weight of 1 gives the end.
Tensor Interpolated(const Tensor& x, const Tensor& end, const Tensor& weight) {
  const Tensor apart = end - x, size = Abs(Detach(weight));
  return Where(Lt(size, Constant(0.5, size.dtype())), x + weight * apart,
               end - apart * (1.0 - weight));
}

}  // namespace

Tensor Lerp(const Tensor& x, const Tensor& end, const Number& weight) {
  if (x.dtype() != end.dtype())
    ThrowRecordError(
        "lerp", WrongType("takes operands of one dtype, not ", x.shape(), " and ", end.shape()));
  if (!IsFloat(x.dtype()) && !IsComplex(x.dtype()))
    ThrowRecordError("lerp", WrongType("takes floats, not ", x.shape()));
  const Tensor w = Full({}, weight.Beside(x), x.device());
  return To(Interpolated(x, end, w), x.dtype());
}
Tensor Lerp(const Tensor& x, const Tensor& end, const Tensor& weight) {
  if (x.dtype() != end.dtype() || x.dtype() != weight.dtype())
    ThrowRecordError("lerp", WrongType("takes operands of one dtype, not ", x.shape(), ", ",
                                       end.shape(), " and ", weight.shape()));
  return Interpolated(x, end, weight);
}

}  // namespace lazuli::lazy
