#include "lazy/ops/elementwise/complex.h"

#include <array>
#include <numbers>

#include "ir/support/wrong_type.h"
#include "lazy/ops/elementwise/composite.h"

namespace lazuli::lazy {

using lowering::Opcode;

Tensors ImagOp::Vjp(const Saved&, const Tensor& dy) const { return {Complex(ZerosLike(dy), dy)}; }

lowering::Op ComplexOp::Lower(lowering::Builder& b, lowering::Op real, lowering::Op imag) const {
  const DType dtype = real.dtype();
  if (dtype != imag.dtype() || (dtype != DType::kF32 && dtype != DType::kF64)) {
    return b.Error(WrongType("takes parts that are both f32 or both f64, not ", real.shape(),
                             " and ", imag.shape()));
  }
  auto [x, y] = b.BroadcastTogether(real, imag);
  return b.Binary(Opcode::kComplex, x, y);
}

Tensors ComplexOp::Vjp(const Saved& s, const Tensor& dy) const {
  Tensors grads(2);
  if (s.needs(0)) grads[0] = SumToShape(Real(dy), s.shape(0));
  if (s.needs(1)) grads[1] = SumToShape(Imag(dy), s.shape(1));
  return grads;
}

lowering::Op ConjOp::Lower(lowering::Builder& b, lowering::Op x) const {
  return b.Binary(Opcode::kComplex, b.Unary(Opcode::kReal, x),
                  b.Unary(Opcode::kNegate, b.Unary(Opcode::kImag, x)));
}

Tensors ConjOp::Vjp(const Saved&, const Tensor& dy) const { return {Conj(dy)}; }

Tensor Real(const Tensor& x) { return IsComplex(x.dtype()) ? Record(RealOp{}, x) : x; }

Tensor Imag(const Tensor& x) {
  if (!IsComplex(x.dtype()))
    ThrowRecordError("imag", WrongType("takes complex numbers, not ", x.shape()));
  return Record(ImagOp{}, x);
}

Tensor Conj(const Tensor& x) { return IsComplex(x.dtype()) ? Record(ConjOp{}, x) : x; }
Tensor ConjPhysical(const Tensor& x) { return Conj(x); }

Tensor Complex(const Tensor& real, const Tensor& imag) { return Record(ComplexOp{}, real, imag); }
Value ComplexOf(const Value& real, const Value& imag) {
  std::array<Value, 2> parts{real, imag};
  return {MakeIntrusive<OpNode<ComplexOp>>(ComplexOp{}, absl::MakeSpan(parts), CurrentSite()), 0};
}

Tensor Angle(const Tensor& in) {
  if (IsComplex(in.dtype())) return Atan2(Imag(in), Real(in));
  const Tensor x = Floating(in);
  const Value zero = Constant(0, x.dtype());
  return Where(Lt(x, zero), Constant(std::numbers::pi, x.dtype()),
               Where(Ne(x, x), Floor(x), zero));  // NaN, without a gradient
}

Tensor Polar(const Tensor& abs, const Tensor& angle) {
  return Complex(abs * Cos(angle), abs * Sin(angle));
}

Tensor Sgn(const Tensor& x) {
  if (!IsComplex(x.dtype())) return Sign(x);
  const Tensor size = Abs(x), none = Eq(Detach(size), Number0(size));
  return Where(none, Number0(x), x / Where(none, Number1(size), size));
}

Tensor ResolveConj(const Tensor& x) { return x; }
Tensor ResolveNeg(const Tensor& x) { return x; }

}  // namespace lazuli::lazy
