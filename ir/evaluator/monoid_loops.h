// Monoids as compile-time values, for loops that combine elements without calling a region.
#pragma once

#include "ir/evaluator/complex_ops.h"
#include "ir/evaluator/internal.h"
#include "ir/evaluator/kernels.h"
#include "ir/evaluator/scalar_ops.h"
#include "ir/hlo/monoid.h"

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

// Calls f.template operator()<kMonoid>().
template <class F>
void VisitMonoidOpcode(Opcode monoid, F&& f) {
  switch (monoid) {
    case Opcode::kAdd:
      return f.template operator()<Opcode::kAdd>();
    case Opcode::kMultiply:
      return f.template operator()<Opcode::kMultiply>();
    case Opcode::kMaximum:
      return f.template operator()<Opcode::kMaximum>();
    case Opcode::kMinimum:
      return f.template operator()<Opcode::kMinimum>();
    case Opcode::kAnd:
      return f.template operator()<Opcode::kAnd>();
    case Opcode::kOr:
      return f.template operator()<Opcode::kOr>();
    case Opcode::kXor:
      return f.template operator()<Opcode::kXor>();
    default:
      LAZULI_CHECK(false, OpcodeText(monoid), " is not a monoid");
  }
}

// Calls f.template operator()<kMonoid, T>() for T the host type of an accumulation type.
template <class F>
void VisitMonoid(Opcode monoid, DType dtype, F&& f) {
  VisitMonoidOpcode(monoid, [&]<Opcode kMonoid>() {
    VisitDType(dtype, [&]<DType kType>() {
      using T = HostType<kType>;
      if constexpr (!recipes::SmallFloat<T> && kMonoidTakes<kMonoid, T>)
        f.template operator()<kMonoid, T>();
    });
  });
}

// Of integers of a width one loop, without sign, where the sign makes no difference to the bits.
template <Opcode kMonoid, class T>
struct LoopTypeOf {
  using type = T;
};
template <Opcode kMonoid, class T>
  requires(std::is_integral_v<T> && kMonoid != Opcode::kMaximum && kMonoid != Opcode::kMinimum)
struct LoopTypeOf<kMonoid, T> {
  using type = std::make_unsigned_t<T>;
};
template <Opcode kMonoid, class T>
using LoopType = typename LoopTypeOf<kMonoid, T>::type;

// What f.template operator()<kMonoid, T>() gives, pointers to loops, where one step after the
// other on elements of the type itself is what the monoid does; else nulls.
template <class Loop, class F>
Loop FindMonoidLoop(Opcode monoid, DType dtype, F&& f) {
  Loop loop{};
  if (Row(dtype).bits < 8) return loop;  // sub-byte types wrap after every step
  VisitMonoidOpcode(monoid, [&]<Opcode kMonoid>() {
    VisitDType(dtype, [&]<DType kType>() {
      using T = HostType<kType>;
      if constexpr (!recipes::kIsFloat8<T> && !std::is_same_v<T, bool> && kMonoidTakes<kMonoid, T>)
        loop = f.template operator()<kMonoid, LoopType<kMonoid, T>>();
    });
  });
  return loop;
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
