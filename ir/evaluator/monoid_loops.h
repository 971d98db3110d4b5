// Monoids as compile-time values, for loops that combine elements without calling a region.
#pragma once

#include "ir/evaluator/complex_ops.h"
#include "ir/evaluator/internal.h"
#include "ir/evaluator/kernels.h"
#include "ir/evaluator/scalar_ops.h"

namespace lazuli::hlo {

template <Opcode monoid, class T>
inline constexpr bool kMonoidTakes = [] {
  constexpr bool kBits = std::is_integral_v<T>;
  if (monoid == Opcode::kAnd || monoid == Opcode::kOr || monoid == Opcode::kXor) return kBits;
  if (monoid == Opcode::kMaximum || monoid == Opcode::kMinimum) return !recipes::kIsComplex<T>;
  return true;
}();

template <Opcode monoid, class T>
T Combine(T x, T y) {
  if constexpr (monoid == Opcode::kAdd) return recipes::Add(x, y);
  if constexpr (monoid == Opcode::kMultiply) return recipes::Multiply(x, y);
  if constexpr (monoid == Opcode::kMaximum) return recipes::Maximum(x, y);
  if constexpr (monoid == Opcode::kMinimum) return recipes::Minimum(x, y);
  if constexpr (monoid == Opcode::kAnd) return recipes::And(x, y);
  if constexpr (monoid == Opcode::kOr) return recipes::Or(x, y);
  if constexpr (monoid == Opcode::kXor) return recipes::Xor(x, y);
}

// Calls f.template operator()<kMonoid, T>() for T the host type of an accumulation type.
template <Opcode kMonoid, class F>
void VisitMonoidType(DType dtype, F&& f) {
  VisitDType(dtype, [&]<DType kType>() {
    using T = HostType<kType>;
    if constexpr (!recipes::SmallFloat<T> && kMonoidTakes<kMonoid, T>)
      f.template operator()<kMonoid, T>();
  });
}
template <class F>
void VisitMonoid(Opcode monoid, DType dtype, F&& f) {
  switch (monoid) {
    case Opcode::kAdd:
      return VisitMonoidType<Opcode::kAdd>(dtype, f);
    case Opcode::kMultiply:
      return VisitMonoidType<Opcode::kMultiply>(dtype, f);
    case Opcode::kMaximum:
      return VisitMonoidType<Opcode::kMaximum>(dtype, f);
    case Opcode::kMinimum:
      return VisitMonoidType<Opcode::kMinimum>(dtype, f);
    case Opcode::kAnd:
      return VisitMonoidType<Opcode::kAnd>(dtype, f);
    case Opcode::kOr:
      return VisitMonoidType<Opcode::kOr>(dtype, f);
    case Opcode::kXor:
      return VisitMonoidType<Opcode::kXor>(dtype, f);
    default:
      LAZULI_CHECK(false, OpcodeText(monoid), " is no monoid");
  }
}

// Whether VisitMonoid calls its function for the type's accumulation type.
inline bool MonoidTakes(Opcode monoid, DType dtype) {
  bool takes = false;
  VisitMonoid(monoid, AccumulationType(dtype),
              [&takes]<Opcode kMonoid, class T>() { takes = true; });
  return takes;
}

// The value of an accumulation as elements of the instruction's type.
inline Literal WrappedTo(DType dtype, Literal value) {
  if (value.shape().dtype() != dtype) return value.Converted(dtype);
  WrapSubByte(dtype, value.mutable_raw(), value.shape().num_elements());
  return value;
}

}  // namespace lazuli::hlo
