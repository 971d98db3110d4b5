// The recipes on host scalars that are not f32 or f64: pred, integers, the small floats.
//
// Integers wrap; x / 0 is all ones, x % 0 is x, the smallest number divided by -1 is itself; shifts
// by the width or more give 0 or the sign. Small floats compute in f32 and round once. Complex
// numbers are in complex_ops.h.
#pragma once

#include <bit>
#include <concepts>
#include <limits>
#include <type_traits>

#include "ir/recipes/recipes.h"
#include "ir/types/half.h"

namespace lazuli::hlo::recipes {

template <class T>
concept Integer = std::integral<T> && !std::same_as<T, bool>;

template <class T>
inline constexpr bool kIsFloat8 = false;
template <int kFormat>
inline constexpr bool kIsFloat8<Float8<kFormat>> = true;
template <class T>
concept SmallFloat = std::same_as<T, half> || std::same_as<T, bfloat16> || kIsFloat8<T>;

// --- integers

// Arithmetic wraps in 64 unsigned bits and is cut down: no signed overflow anywhere.
template <Integer T>
T Add(T x, T y) {
  return static_cast<T>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
}
template <Integer T>
T Subtract(T x, T y) {
  return static_cast<T>(static_cast<uint64_t>(x) - static_cast<uint64_t>(y));
}
template <Integer T>
T Multiply(T x, T y) {
  return static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
}
template <Integer T>
T Negate(T x) {
  return Subtract(T{0}, x);
}
template <Integer T>
T Divide(T x, T y) {
  if (y == 0) return static_cast<T>(-1);
  if (std::is_signed_v<T> && y == static_cast<T>(-1)) return Negate(x);
  return static_cast<T>(x / y);
}
template <Integer T>
T Remainder(T x, T y) {
  if (y == 0) return x;
  if (std::is_signed_v<T> && y == static_cast<T>(-1)) return 0;
  return static_cast<T>(x % y);
}
template <Integer T>
T Abs(T x) {
  return x < 0 ? Negate(x) : x;
}
template <Integer T>
T Sign(T x) {
  return static_cast<T>((x > 0) - (x < 0));
}
template <Integer T>
T Maximum(T x, T y) {
  return x > y ? x : y;
}
template <Integer T>
T Minimum(T x, T y) {
  return x < y ? x : y;
}
// By squaring, wrapping; a negative exponent leaves 1 and -1 only.
template <Integer T>
T Power(T x, T y) {
  if (y < 0) return x == 1 ? T{1} : x == static_cast<T>(-1) ? (y & 1 ? x : T{1}) : T{0};
  T result = 1;
  for (T n = y; n != 0; n = static_cast<T>(n >> 1)) {
    if (n & 1) result = Multiply(result, x);
    x = Multiply(x, x);
  }
  return result;
}
template <Integer T>
T And(T x, T y) {
  return x & y;
}
template <Integer T>
T Or(T x, T y) {
  return x | y;
}
template <Integer T>
T Xor(T x, T y) {
  return x ^ y;
}
template <Integer T>
T Not(T x) {
  return static_cast<T>(~x);
}
template <Integer T>
T Popcnt(T x) {
  return static_cast<T>(std::popcount(static_cast<std::make_unsigned_t<T>>(x)));
}
template <Integer T>
T Clz(T x) {
  return static_cast<T>(std::countl_zero(static_cast<std::make_unsigned_t<T>>(x)));
}
template <Integer T>
bool ShiftInRange(T y) {
  return static_cast<std::make_unsigned_t<T>>(y) < sizeof(T) * 8;
}
template <Integer T>
T ShiftLeft(T x, T y) {
  return ShiftInRange(y) ? static_cast<T>(static_cast<uint64_t>(x) << y) : T{0};
}
template <Integer T>
T ShiftRightLogical(T x, T y) {
  return ShiftInRange(y) ? static_cast<T>(static_cast<std::make_unsigned_t<T>>(x) >> y) : T{0};
}
template <Integer T>
T ShiftRightArithmetic(T x, T y) {
  const auto wide = static_cast<std::make_signed_t<T>>(x);
  return static_cast<T>(
      wide >> (ShiftInRange(y) ? static_cast<int>(y) : static_cast<int>(sizeof(T) * 8 - 1)));
}

// --- pred: a one-bit number whose sum saturates (or) and whose product is and

template <class T>
concept Pred = std::same_as<T, bool>;

template <Pred T>
T Add(T x, T y) {
  return x || y;
}
template <Pred T>
T Subtract(T x, T y) {
  return x != y;
}
template <Pred T>
T Multiply(T x, T y) {
  return x && y;
}
template <Pred T>
T Divide(T x, T y) {
  return x || !y;
}
template <Pred T>
T Negate(T x) {
  return x;
}
template <Pred T>
T Maximum(T x, T y) {
  return x || y;
}
template <Pred T>
T Minimum(T x, T y) {
  return x && y;
}
template <Pred T>
T Power(T x, T y) {
  return x || !y;
}
template <Pred T>
T And(T x, T y) {
  return x && y;
}
template <Pred T>
T Or(T x, T y) {
  return x || y;
}
template <Pred T>
T Xor(T x, T y) {
  return x != y;
}
template <Pred T>
T Not(T x) {
  return !x;
}

// --- small floats

#define LAZULI_UNARY_SMALL(name)           \
  template <SmallFloat T>                  \
  T name(T x) {                            \
    return T(name(static_cast<float>(x))); \
  }
#define LAZULI_BINARY_SMALL(name)                                 \
  template <SmallFloat T>                                         \
  T name(T x, T y) {                                              \
    return T(name(static_cast<float>(x), static_cast<float>(y))); \
  }
LAZULI_UNARY_SMALL(Abs)
LAZULI_UNARY_SMALL(Negate)
LAZULI_UNARY_SMALL(Sign)
LAZULI_UNARY_SMALL(Ceil)
LAZULI_UNARY_SMALL(Floor)
LAZULI_UNARY_SMALL(RoundNearestAfz)
LAZULI_UNARY_SMALL(RoundNearestEven)
LAZULI_UNARY_SMALL(Sqrt)
LAZULI_UNARY_SMALL(Rsqrt)
LAZULI_UNARY_SMALL(Cbrt)
LAZULI_UNARY_SMALL(Exp)
LAZULI_UNARY_SMALL(Expm1)
LAZULI_UNARY_SMALL(Log)
LAZULI_UNARY_SMALL(Log1p)
LAZULI_UNARY_SMALL(Logistic)
LAZULI_UNARY_SMALL(Tanh)
LAZULI_UNARY_SMALL(Sin)
LAZULI_UNARY_SMALL(Cos)
LAZULI_UNARY_SMALL(Tan)
LAZULI_UNARY_SMALL(Erf)
LAZULI_UNARY_SMALL(Real)
LAZULI_UNARY_SMALL(Imag)
LAZULI_UNARY_SMALL(Asin)
LAZULI_UNARY_SMALL(Acos)
LAZULI_UNARY_SMALL(Atan)
LAZULI_UNARY_SMALL(Asinh)
LAZULI_UNARY_SMALL(Acosh)
LAZULI_UNARY_SMALL(Atanh)
LAZULI_UNARY_SMALL(Sinh)
LAZULI_UNARY_SMALL(Cosh)
LAZULI_BINARY_SMALL(Add)
LAZULI_BINARY_SMALL(Subtract)
LAZULI_BINARY_SMALL(Multiply)
LAZULI_BINARY_SMALL(Divide)
LAZULI_BINARY_SMALL(Remainder)
LAZULI_BINARY_SMALL(Maximum)
LAZULI_BINARY_SMALL(Minimum)
LAZULI_BINARY_SMALL(Power)
LAZULI_BINARY_SMALL(Atan2)
#undef LAZULI_UNARY_SMALL
#undef LAZULI_BINARY_SMALL
template <SmallFloat T>
bool IsFinite(T x) {
  return IsFinite(static_cast<float>(x));
}

}  // namespace lazuli::hlo::recipes
