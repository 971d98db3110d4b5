// Bounds from one side, numbers everywhere, and floats as mantissa and exponent.
#include <array>

#include "ir/support/wrong_type.h"
#include "lazy/ops/functions.h"
#include "lazy/ops/pointwise.h"

namespace lazuli::lazy {

Tensor ClampMin(const Tensor& x, const Number& low) { return Clamp(x, low, std::nullopt); }
Tensor ClampMin(const Tensor& x, const Tensor& low) { return Clamp(x, low, Tensor()); }
Tensor ClampMax(const Tensor& x, const Number& high) { return Clamp(x, std::nullopt, high); }
Tensor ClampMax(const Tensor& x, const Tensor& high) { return Clamp(x, Tensor(), high); }

Tensor ResolveConj(const Tensor& x) { return x; }
Tensor ResolveNeg(const Tensor& x) { return x; }

Tensor Fill(const Tensor& x, const Number& value) {
  return MaskedFill(x, FullConstant(Shape(DType::kPred), 1, x.device()), value);
}
Tensor Fill(const Tensor& x, const Tensor& value) {
  if (value.rank() != 0) {
    ThrowRecordError("fill", InvalidArgument("value must be of rank 0, is ", value.shape()));
  }
  return Clone(BroadcastTo(To(value, x.dtype()), x.shape().dims()));
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
  return {Ldexp(dys[0], -s.y(1))};
}

std::pair<Tensor, Tensor> Frexp(const Tensor& x) {
  const Operand in(x);
  Tensors results = RecordAll(FrexpOp{}, absl::MakeConstSpan(&in, 1));
  return {results[0], results[1]};
}

}  // namespace lazuli::lazy
