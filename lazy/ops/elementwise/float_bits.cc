#include "lazy/ops/elementwise/float_bits.h"

#include <array>

#include "ir/support/wrong_type.h"
#include "lazy/ops/core/gradient_ops.h"
#include "lazy/ops/elementwise/composite.h"
#include "lazy/ops/elementwise/elementwise.h"

namespace lazuli::lazy {
namespace {

using lowering::Opcode;
using Direction = hlo::ComparisonDirection;

}  // namespace

lowering::Op SignBitOp::Lower(lowering::Builder& b, lowering::Op x) const {
  if (IsComplex(x.dtype())) return b.Error(WrongType("takes real numbers, not ", x.shape()));
  if (!IsFloat(x.dtype())) {
    return x.dtype() == DType::kPred || IsUnsigned(x.dtype())
               ? b.Full(Shape(DType::kPred, x.shape().dims()), 0)
               : b.Compare(Direction::kLt, x, b.ZerosLike(x));
  }
  // A quotient of 1 has the sign of a zero; NaN, which is not below anything, that of its bits.
  const DType bits = ByteWidth(x.dtype()) == 8   ? DType::kS64
                     : ByteWidth(x.dtype()) == 4 ? DType::kS32
                     : ByteWidth(x.dtype()) == 2 ? DType::kS16
                                                 : DType::kS8;
  const Shape shape(bits, x.shape().dims());
  const lowering::Op word = b.Add(Opcode::kBitcastConvert, {x}, hlo::NoAttrs{}, {}, &shape);
  return b.Compare(Direction::kLt, word, b.ZerosLike(word));
}

lowering::Op NextAfterOp::Lower(lowering::Builder& b, lowering::Op in_x, lowering::Op in_y) const {
  auto [x, y] = Prepare(Accepts::kReal, in_x, in_y);
  if (!IsFloat(x.dtype()) || ByteWidth(x.dtype()) < 2)
    return b.Error(WrongType("takes floats, not ", in_x.shape(), " and ", in_y.shape()));
  const DType type = ByteWidth(x.dtype()) == 8   ? DType::kS64
                     : ByteWidth(x.dtype()) == 4 ? DType::kS32
                                                 : DType::kS16;
  const Shape bits(type, x.shape().dims()), floats = x.shape();
  const auto cast = [&](lowering::Op v, const Shape& to) {
    return b.Add(Opcode::kBitcastConvert, {v}, hlo::NoAttrs{}, {}, &to);
  };
  const auto number = [&](double v) { return b.Full(bits, v); };
  const lowering::Op zero = b.ZerosLike(x);
  // Away from 0 the magnitude grows by one bit.
  const lowering::Op up = b.Compare(Direction::kGt, y, x);
  const lowering::Op positive = b.Compare(Direction::kGt, x, zero);
  const lowering::Op grows = b.Compare(Direction::kEq, up, positive);
  const lowering::Op next =
      cast(b.Plus(cast(x, bits), b.Select(grows, number(1), number(-1))), floats);
  const lowering::Op least = cast(number(1), floats);
  const lowering::Op beside_zero = b.Select(up, least, b.Unary(Opcode::kNegate, least));
  const lowering::Op moved = b.Select(b.Compare(Direction::kEq, x, zero), beside_zero, next);
  const lowering::Op same = b.Select(b.Compare(Direction::kEq, x, y), y, moved);
  const lowering::Op nan =
      b.Binary(Opcode::kOr, b.Compare(Direction::kNe, x, x), b.Compare(Direction::kNe, y, y));
  return b.Select(nan, b.Plus(x, y), same);
}

Tensors NextAfterOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Tensor stays = Eq(s.x(0), s.x(1));
  return {SumToShape(Where(stays, Constant(0, dy.dtype()), dy), s.shape(0)), Tensor()};
}

Tensor Signbit(const Tensor& x) { return Record(SignBitOp{}, x); }
Tensor Nextafter(const Tensor& x, const Tensor& y) { return Record(NextAfterOp{}, x, y); }

Tensor Copysign(const Operand& in_x, const Operand& in_y) {
  const auto [x, y] = Together("copysign", in_x, in_y);
  const Tensor zero = Eq(x, Number0(x));  // whose gradient is 0
  const Tensor magnitude = Where(zero, Number0(x), Abs(x));
  return Unaffected(Where(Signbit(y), -magnitude, magnitude), y);
}

Tensor Ldexp(const Tensor& x, const Tensor& other) {
  const DType common = Together("ldexp", x.shape(), other.shape()).dtype();
  // A common dtype of integers need not hold the exponent.
  const Tensor y = IsFloat(common) || IsComplex(common) ? To(other, common) : Floating(other);
  const Value two = Constant(2, y.dtype());
  if (!IsFloat(y.dtype()) || !IsIntegral(other.dtype())) return Mul(x, Pow(two, y));
  // A power of a whole number is a sum of steps, which leaves numbers that the power itself is beyond. Three steps lead from the
  // largest number to the smallest.
  const double step = y.dtype() == DType::kF64 ? 733 : y.dtype() == DType::kF16 ? 14 : 100;
  const Tensor bounded = Clamp(y, Number(-3 * step), Number(3 * step));
  const Tensor part = Trunc(bounded / 3.0), scale = Pow(two, part);
  return Mul(Mul(Mul(x, scale), scale), Pow(two, bounded - part * 2.0));
}

// By the bits of an f64, which holds all other floats, and whose own subnormals are scaled first.
std::array<lowering::Op, 2> FrexpOp::Lower(lowering::Builder& b, lowering::Op in) const {
  using lowering::Opcode;
  using Direction = hlo::ComparisonDirection;
  if (!IsFloat(in.dtype())) {
    const lowering::Op error = b.Error(InvalidArgument("takes floats, not ", in.shape()));
    return {error, error};
  }
  constexpr int kDigits = 52, kBias = 1022, kExponents = 0x7ff, kScale = 54;
  const lowering::Op x = b.Convert(in, DType::kF64);
  const Shape& floats = x.shape();
  const Shape words(DType::kS64, floats.dims());
  const auto number = [&](double v) { return b.Full(words, v); };
  const auto cast = [&](lowering::Op v, const Shape& to) {
    return b.Add(Opcode::kBitcastConvert, {v}, hlo::NoAttrs{}, {}, &to);
  };
  const lowering::Op size = b.Unary(Opcode::kAbs, x);
  const lowering::Op is_small = b.Compare(Direction::kLt, size, b.Full(floats, 0x1p-1022));
  const lowering::Op scaled = b.Select(is_small, b.Times(x, b.Full(floats, 0x1p54)), x);
  const lowering::Op bits = cast(scaled, words);
  const lowering::Op raw =
      b.Binary(Opcode::kAnd, b.Binary(Opcode::kShiftRightLogical, bits, number(kDigits)),
               number(kExponents));
  // The exponent's bits replaced by those of 0.5.
  const lowering::Op change = b.Binary(Opcode::kSubtract, number(kBias), raw);
  const lowering::Op moved = b.Plus(bits, b.Binary(Opcode::kShiftLeft, change, number(kDigits)));
  const lowering::Op mantissa = cast(moved, floats);
  const lowering::Op unscaled = b.Select(is_small, number(kScale), number(0));
  const lowering::Op exponent =
      b.Binary(Opcode::kSubtract, b.Binary(Opcode::kSubtract, raw, number(kBias)), unscaled);
  const lowering::Op zero = b.Compare(Direction::kEq, x, b.Full(floats, 0));
  const lowering::Op endless = b.Compare(Direction::kEq, raw, number(kExponents));
  const lowering::Op itself = b.Binary(Opcode::kOr, zero, endless);
  return {b.Convert(b.Select(itself, x, mantissa), in.dtype()),
          b.Convert(b.Select(itself, number(0), exponent), DType::kS32)};
}

Tensors FrexpOp::Vjp(const Saved& s, absl::Span<const Tensor> dys) const {
  if (!dys[0].defined()) return {Tensor()};
  const DType dtype = dys[0].dtype();
  const DType wide = Promote(dtype, DType::kS32) ? dtype : DType::kF32;  // of 8 bits
  return {To(Ldexp(To(dys[0], wide), -s.y(1)), dtype)};
}

std::pair<Tensor, Tensor> Frexp(const Tensor& x) {
  const Operand in(x);
  Tensors results = RecordAll(FrexpOp{}, absl::MakeConstSpan(&in, 1));
  return {results[0], results[1]};
}

}  // namespace lazuli::lazy
