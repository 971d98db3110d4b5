// Formulas over ops, as one writes them: 1.0 - y * y. A number is a constant of the other side's shape.
#pragma once

#include "ir/hlo/shapes/shape_inference.h"
#include "lowering/builder/builder.h"

namespace lazuli::lowering {

struct Value {
  Op op;
  Value(Op value) : op(value) {}  // NOLINT(google-explicit-constructor)
  Builder& b() const { return *op.builder(); }
  Value Number(double value) const { return b().Full(op.shape().WithDefaultLayout(), value); }
};

inline Value operator+(Value x, Value y) { return x.b().Plus(x.op, y.op); }
inline Value operator-(Value x, Value y) { return x.b().Minus(x.op, y.op); }
inline Value operator*(Value x, Value y) { return x.b().Times(x.op, y.op); }
inline Value operator/(Value x, Value y) { return x.b().DividedBy(x.op, y.op); }
inline Value operator-(Value x) { return x.b().Unary(Opcode::kNegate, x.op); }
inline Value operator+(Value x, double y) { return x + x.Number(y); }
inline Value operator-(Value x, double y) { return x - x.Number(y); }
inline Value operator*(double x, Value y) { return y.Number(x) * y; }
inline Value operator-(double x, Value y) { return y.Number(x) - y; }
inline Value operator+(double x, Value y) { return y.Number(x) + y; }
inline Value operator/(double x, Value y) { return y.Number(x) / y; }

inline Value OnesLike(Value x) { return x.Number(1); }
inline Value Exp(Value x) { return x.b().Unary(Opcode::kExponential, x.op); }
inline Value Log(Value x) { return x.b().Unary(Opcode::kLog, x.op); }
inline Value Sine(Value x) { return x.b().Unary(Opcode::kSine, x.op); }
inline Value Cosine(Value x) { return x.b().Unary(Opcode::kCosine, x.op); }
inline Value Sinh(Value x) { return x.b().Unary(Opcode::kSinh, x.op); }
inline Value Cosh(Value x) { return x.b().Unary(Opcode::kCosh, x.op); }
inline Value Rsqrt(Value x) { return x.b().Unary(Opcode::kRsqrt, x.op); }
inline Value Sign(Value x) { return x.b().Unary(Opcode::kSign, x.op); }
inline Value RoundEven(Value x) { return x.b().Unary(Opcode::kRoundNearestEven, x.op); }
inline Value Power(Value x, Value y) { return x.b().Binary(Opcode::kPower, x.op, y.op); }

inline Value RealPart(Value x) {
  return ir::IsComplex(x.op.dtype()) ? Value(x.b().Unary(Opcode::kReal, x.op)) : x;
}
inline Value ImagPart(Value x) { return x.b().Unary(Opcode::kImag, x.op); }
inline Value Complex(Value re, Value im) { return re.b().Binary(Opcode::kComplex, re.op, im.op); }
inline Value Conj(Value x) {
  return ir::IsComplex(x.op.dtype()) ? Complex(RealPart(x), -ImagPart(x)) : x;
}
// A real value as one of the dtype, which may be complex.
inline Value As(Value x, DType dtype) { return x.b().Convert(x.op, dtype); }

inline Value Equal(Value x, Value y) {
  return x.b().Compare(hlo::ComparisonDirection::kEq, x.op, y.op);
}
inline Value Less(Value x, Value y) {
  return x.b().Compare(hlo::ComparisonDirection::kLt, x.op, y.op);
}
inline Value Both(Value x, Value y) { return x.b().Binary(Opcode::kAnd, x.op, y.op); }
inline Value Either(Value x, Value y) { return x.b().Binary(Opcode::kOr, x.op, y.op); }
inline Value Choose(Value pred, Value yes, Value no) {
  return yes.b().Select(pred.op, yes.op, no.op);
}
// x, with 1 where it is 0.
inline Value ZeroAsOne(Value x) { return Choose(Equal(x, x.Number(0)), x.Number(1), x); }

}  // namespace lazuli::lowering
