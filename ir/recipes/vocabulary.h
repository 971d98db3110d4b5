// What a type must offer so that the recipes of recipes.h run on it.
//
// A recipe is a template over a value type V whose format (f32 or f64) is known at compile time:
// float and double themselves (here), or a wrapper over a vector of them in generated code. All a
// recipe uses of V is
//
//   V        copyable; + - * / and unary - ; == != < <= > >= between two V give a Mask (IEEE: false
//            for NaN, but != true)
//   Mask     copyable; & | and unary ! give Masks
//   Int      copyable; signed two's complement integers as wide as V's elements; + - (wrapping)
//            & | ^ between two Ints; == and < (signed) give a Mask
//   Ops<V>   a specialisation in namespace lazuli::hlo::recipes with
//     types      Scalar (float or double), Int, Mask
//     constants  static V Constant(V like, Scalar)       the number in every lane; `like` carries
//                                                        builder and width
//                static Int IntConstant(V like, int64_t) likewise
//     exact      static V Fma(V a, V b, V c)             a * b + c rounded once
//                static V Sqrt(V)                        correctly rounded
//                static V Floor(V), RoundEven(V)         to an integral value; -0 and small
//                                                        negatives keep their sign
//                static V Fmod(V, V)                     C's fmod: exact, sign of the dividend
//     choice     static V Select(Mask, V yes, V no), static Int SelectInt(Mask, Int yes, Int no)
//     bits       static Int ToBits(V), static V FromBits(Int)
//                static Int ShiftLeft(Int, int n), ShiftRight(Int, int n) (logical),
//                ShiftRightArithmetic(Int, int n)
//
// and no more: no branches, loops over values, memory, calls into libm or conversions between
// floats and integers. Operators and Ops must round each operation by itself (no contraction, no
// reassociation) and keep subnormals; then the recipes give the same bits everywhere. NaN payloads
// are not part of the promise.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>

#include "ir/support/namespaces.h"

namespace lazuli::hlo::recipes {

template <class V>
struct Ops;

// A signed integer whose + and - wrap, as the builtin ones may not.
template <class I>
struct WrappingInt {
  using Unsigned = std::make_unsigned_t<I>;
  I value;
  friend WrappingInt operator+(WrappingInt x, WrappingInt y) { return Of(x.bits() + y.bits()); }
  friend WrappingInt operator-(WrappingInt x, WrappingInt y) { return Of(x.bits() - y.bits()); }
  friend WrappingInt operator&(WrappingInt x, WrappingInt y) { return Of(x.bits() & y.bits()); }
  friend WrappingInt operator|(WrappingInt x, WrappingInt y) { return Of(x.bits() | y.bits()); }
  friend WrappingInt operator^(WrappingInt x, WrappingInt y) { return Of(x.bits() ^ y.bits()); }
  friend bool operator==(WrappingInt x, WrappingInt y) { return x.value == y.value; }
  friend bool operator<(WrappingInt x, WrappingInt y) { return x.value < y.value; }
  Unsigned bits() const { return static_cast<Unsigned>(value); }
  static WrappingInt Of(Unsigned bits) { return {static_cast<I>(bits)}; }
};

template <class S, class I>
struct ScalarRecipeOps {
  using Scalar = S;
  using Int = WrappingInt<I>;
  using Mask = bool;
  static S Constant(S, S value) { return value; }
  static Int IntConstant(S, int64_t value) { return {static_cast<I>(value)}; }
  static S Fma(S a, S b, S c) { return std::fma(a, b, c); }
  static S Sqrt(S x) { return std::sqrt(x); }
  static S Floor(S x) { return std::floor(x); }
  // Threads run with the default rounding mode.
  static S RoundEven(S x) { return std::nearbyint(x); }
  static S Fmod(S x, S y) { return std::fmod(x, y); }
  static S Select(bool mask, S yes, S no) { return mask ? yes : no; }
  static Int SelectInt(bool mask, Int yes, Int no) { return mask ? yes : no; }
  static Int ToBits(S x) { return {std::bit_cast<I>(x)}; }
  static S FromBits(Int bits) { return std::bit_cast<S>(bits.value); }
  static Int ShiftLeft(Int x, int n) { return Int::Of(x.bits() << n); }
  static Int ShiftRight(Int x, int n) { return Int::Of(x.bits() >> n); }
  static Int ShiftRightArithmetic(Int x, int n) { return {x.value >> n}; }
};
template <>
struct Ops<float> : ScalarRecipeOps<float, int32_t> {};
template <>
struct Ops<double> : ScalarRecipeOps<double, int64_t> {};

// A type that the recipes accept.
template <class V>
concept RecipeValue = requires { typename Ops<V>::Scalar; };

namespace internal {

// Short names for what recipes are written in.
template <class V>
using Scalar = typename Ops<V>::Scalar;
template <class V>
using Int = typename Ops<V>::Int;
template <class V>
using Mask = typename Ops<V>::Mask;

template <class V>
V Num(const V& like, double value) {
  return Ops<V>::Constant(like, static_cast<Scalar<V>>(value));
}
template <class V>
Int<V> IntNum(const V& like, int64_t value) {
  return Ops<V>::IntConstant(like, value);
}
template <class V>
V Fma(const V& a, const V& b, const V& c) {
  return Ops<V>::Fma(a, b, c);
}
template <class V>
V If(const Mask<V>& mask, const V& yes, const V& no) {
  return Ops<V>::Select(mask, yes, no);
}

// The format of V's elements.
template <class V>
struct Format {
  using Limits = std::numeric_limits<Scalar<V>>;
  static constexpr bool kF32 = std::is_same_v<Scalar<V>, float>;
  static constexpr int kDigits = Limits::digits;          // 24, 53: bits of precision
  static constexpr int kMantissa = Limits::digits - 1;    // 23, 52: stored bits
  static constexpr int kBias = Limits::max_exponent - 1;  // 127, 1023
  static constexpr int64_t kSign = kF32 ? int64_t{INT32_MIN} : INT64_MIN;
  // Adding it to a small number rounds that to an integer, which then stands in the low bits.
  static constexpr double kRounder = kF32 ? 0x1.8p23 : 0x1.8p52;
  static constexpr int64_t kRounderBits = kF32 ? 0x4b400000 : 0x4338000000000000;
  static constexpr double kInf = std::numeric_limits<double>::infinity();
  static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
};

// Horner's scheme; lowest order first.
template <class V, std::size_t n>
V Polynomial(const V& x, const double (&coefficients)[n]) {
  V sum = Num(x, coefficients[n - 1]);
  for (std::size_t i = n - 1; i-- > 0;) sum = Fma(sum, x, Num(x, coefficients[i]));
  return sum;
}

template <class V>
V Magnitude(const V& x) {
  return Ops<V>::FromBits(Ops<V>::ToBits(x) & IntNum(x, ~Format<V>::kSign));
}
template <class V>
Int<V> SignBit(const V& x) {
  return Ops<V>::ToBits(x) & IntNum(x, Format<V>::kSign);
}
template <class V>
V FlipSign(const V& x, const Int<V>& sign_bit) {
  return Ops<V>::FromBits(Ops<V>::ToBits(x) ^ sign_bit);
}
// Magnitude of `x`, sign of `sign`.
template <class V>
V WithSign(const V& x, const V& sign) {
  return Ops<V>::FromBits((Ops<V>::ToBits(x) & IntNum(x, ~Format<V>::kSign)) | SignBit(sign));
}
// 2^n for n within the exponents of normal numbers.
template <class V>
V PowerOfTwo(const V& like, const Int<V>& n) {
  return Ops<V>::FromBits(
      Ops<V>::ShiftLeft(n + IntNum(like, Format<V>::kBias), Format<V>::kMantissa));
}
// x 2^n for |n| up to twice the exponents of normal numbers; a subnormal result is rounded once.
template <class V>
V Scale(const V& x, const Int<V>& n) {
  const Int<V> half = Ops<V>::ShiftRightArithmetic(n, 1);
  return x * PowerOfTwo(x, half) * PowerOfTwo(x, n - half);
}
// The integer n, at most 2^22, as a V.
template <class V>
V FromSmallInt(const V& like, const Int<V>& n) {
  return Ops<V>::FromBits(n + IntNum(like, Format<V>::kRounderBits)) -
         Num(like, Format<V>::kRounder);
}

// An unevaluated sum hi + lo with |lo| at most about half a unit in the last place of hi.
template <class V>
struct Pair {
  V hi, lo;
};
// Exact a + b if |a| >= |b| or a == 0.
template <class V>
Pair<V> FastTwoSum(const V& a, const V& b) {
  const V sum = a + b;
  return {sum, b - (sum - a)};
}
// Exact a + b.
template <class V>
Pair<V> TwoSum(const V& a, const V& b) {
  const V sum = a + b;
  const V b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}
// Exact a * b (barring underflow).
template <class V>
Pair<V> TwoProduct(const V& a, const V& b) {
  const V product = a * b;
  return {product, Fma(a, b, -product)};
}
// a * b to about twice the precision.
template <class V>
Pair<V> Product(const Pair<V>& a, const Pair<V>& b) {
  const Pair<V> p = TwoProduct(a.hi, b.hi);
  return {p.hi, Fma(a.hi, b.lo, Fma(a.lo, b.hi, p.lo))};
}

}  // namespace internal
}  // namespace lazuli::hlo::recipes
