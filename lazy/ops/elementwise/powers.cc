#include "lazy/ops/elementwise/powers.h"

#include "ir/support/wrong_type.h"
#include "lazy/ops/elementwise/composite.h"
#include "lazy/ops/elementwise/elementwise.h"

namespace lazuli::lazy {
namespace {

using lowering::Opcode;
using Direction = hlo::ComparisonDirection;

}  // namespace

lowering::Op HypotOp::Lower(lowering::Builder& b, lowering::Op in_x, lowering::Op in_y) const {
  auto [l, r] = Prepare(Accepts::kFloat, in_x, in_y);
  if (!IsFloat(l.dtype()))
    return b.Error(WrongType("takes floats, not ", in_x.shape(), " and ", in_y.shape()));
  const lowering::Op x = b.Unary(Opcode::kAbs, l), y = b.Unary(Opcode::kAbs, r);
  const lowering::Op high = b.Maximum(x, y), low = b.Minimum(x, y);
  const auto number = [&](double v) { return b.Full(high.shape(), v); };
  const lowering::Op none = b.Compare(Direction::kEq, high, number(0));
  const lowering::Op ratio = b.DividedBy(low, b.Select(none, number(1), high));
  const lowering::Op root = b.Unary(Opcode::kSqrt, b.Plus(number(1), b.Times(ratio, ratio)));
  const lowering::Op infinite =
      b.Binary(Opcode::kOr, b.Compare(Direction::kEq, x, number(kInfinity)),
               b.Compare(Direction::kEq, y, number(kInfinity)));
  return b.Select(infinite, number(kInfinity), b.Times(high, root));
}

Tensors HypotOp::Vjp(const Saved& s, const Tensor& dy) const {
  Tensors grads(2);
  for (std::size_t i = 0; i < 2; ++i) {
    if (s.needs(i)) grads[i] = SumToShape(dy * (To(s.x(i), dy.dtype()) / s.y()), s.shape(i));
  }
  return grads;
}

Tensor Hypot(const Tensor& x, const Tensor& y) { return Record(HypotOp{}, x, y); }

Tensor FloatPower(const Tensor& x, const Tensor& exponent) {
  const DType wide =
      IsComplex(x.dtype()) || IsComplex(exponent.dtype()) ? DType::kC128 : DType::kF64;
  return Pow(To(x, wide), To(exponent, wide));
}
Tensor FloatPower(const Number& x, const Tensor& exponent) {
  const bool is_complex = x.is_complex() || IsComplex(exponent.dtype());
  const DType wide = is_complex ? DType::kC128 : DType::kF64;
  return Pow(x.As(wide), To(exponent, wide));
}
Tensor FloatPower(const Tensor& x, const Number& exponent) {
  const Tensor wide = To(x, IsComplex(x.dtype()) ? DType::kC128 : DType::kF64);
  return PowNumber(wide, exponent);
}

namespace {

// x := function(what x is now), in the dtype of a power.
template <class F>
Tensor PowerInPlace(const Tensor& x, bool is_complex, F&& function) {
  const DType wide = is_complex || IsComplex(x.dtype()) ? DType::kC128 : DType::kF64;
  if (x.dtype() != wide) {
    ThrowRecordError("float_power_", InvalidArgument("the result is of ", DTypeText(wide),
                                                     ", which ", x.shape(), " does not hold"));
  }
  Update("float_power_", x, [&] { return function(Snapshot(x)); });
  return x;
}

}  // namespace

Tensor FloatPowerInPlace(const Tensor& x, const Tensor& exponent) {
  return PowerInPlace(x, IsComplex(exponent.dtype()),
                      [&](const Tensor& now) { return FloatPower(now, exponent); });
}
Tensor FloatPowerInPlace(const Tensor& x, const Number& exponent) {
  return PowerInPlace(x, exponent.is_complex(),
                      [&](const Tensor& now) { return FloatPower(now, exponent); });
}

}  // namespace lazuli::lazy
