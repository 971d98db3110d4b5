// Recipes of exponentials, logarithms and what is made of them: exp, expm1, log, log1p, logistic,
// tanh, erf.
//
// Largest errors are listed in recipes.h.
#pragma once

#include "ir/recipes/tables.h"
#include "ir/recipes/vocabulary.h"

namespace lazuli::hlo::recipes {

namespace internal {

// ln(2) = kLn2High + kLn2Low; the high part has so many trailing zeros that its product with an
// exponent is exact.
template <class V>
inline constexpr double kLn2High = Format<V>::kF32 ? 0x1.62e300p-1 : 0x1.62e42fee00000p-1;
template <class V>
inline constexpr double kLn2Low = Format<V>::kF32 ? 0x1.2fefa2p-17 : 0x1.a39ef35793c76p-33;

// x = n ln(2) + r with |r| <= ln(2) / 2, and e^r - 1.
template <class V>
struct ExpParts {
  Int<V> n;
  V r_minus_1;  // e^r - 1
};
template <class V>
ExpParts<V> SplitExp(const V& x) {
  const V rounder = Num(x, Format<V>::kRounder);
  const V shifted = Fma(x, Num(x, 0x1.71547652b82fep0), rounder);  // 1 / ln(2)
  const V n = shifted - rounder;
  const V r = Fma(n, Num(x, -kLn2Low<V>), Fma(n, Num(x, -kLn2High<V>), x));
  const V q = Polynomial(r, Tables<Scalar<V>>::kExp);
  return {Ops<V>::ToBits(shifted) - IntNum(x, Format<V>::kRounderBits), Fma(r * r, q, r)};
}

// Beyond these exp (and half of it) is inf and 0; between them n fits Scale().
template <class V>
V ClampExp(const V& x) {
  const V high = Num(x, Format<V>::kF32 ? 90. : 711.);
  const V low = Num(x, Format<V>::kF32 ? -104. : -746.);
  return If(x > high, high, If(x < low, low, x));  // NaN stays
}

// e^x 2^k, so that e^x / 2 does not overflow before its time.
template <class V>
V ExpTimesPowerOfTwo(const V& x, int k) {
  const ExpParts<V> parts = SplitExp(ClampExp(x));
  return Scale(Num(x, 1) + parts.r_minus_1, parts.n + IntNum(x, k));
}

// x = 2^k m with m in [sqrt(1/2), sqrt(2)), for x > 0 and normal.
template <class V>
struct LogParts {
  Int<V> k;
  V m;
};
template <class V>
LogParts<V> SplitLog(const V& x) {
  const int64_t root_half = Format<V>::kF32 ? 0x3f3504f3 : 0x3fe6a09e667f3bcd;
  const int64_t one = static_cast<int64_t>(Format<V>::kBias) << Format<V>::kMantissa;
  const int64_t mantissa = (int64_t{1} << Format<V>::kMantissa) - 1;
  const Int<V> bits = Ops<V>::ToBits(x) + IntNum(x, one - root_half);
  const Int<V> k =
      Ops<V>::ShiftRightArithmetic(bits, Format<V>::kMantissa) - IntNum(x, Format<V>::kBias);
  return {k, Ops<V>::FromBits((bits & IntNum(x, mantissa)) + IntNum(x, root_half))};
}
// Likewise for any x > 0.
template <class V>
LogParts<V> SplitLogOfAny(const V& x) {
  const Mask<V> subnormal = x < Num(x, Format<V>::Limits::min());
  const V scale = Num(x, Format<V>::kF32 ? 0x1p24 : 0x1p53);
  LogParts<V> parts = SplitLog(If(subnormal, x * scale, x));
  parts.k = parts.k - Ops<V>::SelectInt(subnormal, IntNum(x, Format<V>::kDigits), IntNum(x, 0));
  return parts;
}

// k ln(2) + log(1 + f) + c for 1 + f in [sqrt(1/2), sqrt(2)] and a small correction c, by log(1 +
// f) = 2 atanh(f / (2 + f)).
template <class V>
V LogSum(const Int<V>& k, const V& f, const V& c) {
  const V exponent = FromSmallInt(f, k);
  const V half_square = Num(f, 0.5) * f * f;
  const V s = f / (Num(f, 2) + f);
  const V z = s * s;
  const V r = z * Polynomial(z, Tables<Scalar<V>>::kLog);
  const V low = Fma(s, half_square + r, Fma(exponent, Num(f, kLn2Low<V>), c));
  return Fma(exponent, Num(f, kLn2High<V>), f - (half_square - low));
}

}  // namespace internal

template <RecipeValue V>
V Exp(V x) {
  return internal::ExpTimesPowerOfTwo(x, 0);
}

template <RecipeValue V>
V Expm1(V x) {
  using namespace internal;
  const V low = Num(x, -40);  // the result is -1 from there on
  const V high = Num(x, Format<V>::kF32 ? 89. : 710.);
  const ExpParts<V> parts = SplitExp(If(x > high, high, If(x < low, low, x)));
  // 2^n (e^r - 1) + (2^n - 1), halved: 2^n may be 2^128 (2^1024).
  const V half = PowerOfTwo(x, parts.n - IntNum(x, 1));
  const V result = Num(x, 2) * Fma(half, parts.r_minus_1, half - Num(x, 0.5));
  const V tiny = Num(x, Format<V>::kF32 ? 0x1p-25 : 0x1p-54);
  return If(Magnitude(x) < tiny, x, result);
}

template <RecipeValue V>
V Log(V x) {
  using namespace internal;
  const LogParts<V> parts = SplitLogOfAny(x);
  const V result = LogSum(parts.k, parts.m - Num(x, 1), Num(x, 0));
  const V positive = If(x < Num(x, Format<V>::kInf), result, x);  // inf, NaN
  return If(x < Num(x, 0), Num(x, Format<V>::kNan),
            If(x == Num(x, 0), Num(x, -Format<V>::kInf), positive));
}

template <RecipeValue V>
V Log1p(V x) {
  using namespace internal;
  const V one = Num(x, 1);
  const Pair<V> sum = TwoSum(one, x);
  const LogParts<V> parts = SplitLog(sum.hi);
  // 1 + x = sum.hi + sum.lo; where sum.hi needs no scaling, x itself is the exact f.
  const Mask<V> unscaled = parts.k == IntNum(x, 0);
  const V f = If(unscaled, x, parts.m - one);
  const V c = If(unscaled, Num(x, 0), sum.lo / sum.hi);
  const V result = LogSum(parts.k, f, c);
  const V in_domain = If(x < Num(x, Format<V>::kInf), result, x);
  const V tiny = Num(x, Format<V>::kF32 ? 0x1p-25 : 0x1p-54);
  const V outside = If(x == -one, Num(x, -Format<V>::kInf), Num(x, Format<V>::kNan));
  return If(Magnitude(x) < tiny, x, If(x <= -one, outside, in_domain));
}

// 1 / (1 + e^-x), by e^-|x| so that neither tail overflows or loses its digits.
template <RecipeValue V>
V Logistic(V x) {
  using namespace internal;
  const V one = Num(x, 1);
  const V e = Exp(-Magnitude(x));
  const Pair<V> denominator = FastTwoSum(one, e);
  const Mask<V> negative = x < Num(x, 0);
  const V numerator = If(negative, e, one);
  const V quotient = numerator / denominator.hi;
  // One step of refinement; 1 / (1 + e) is the quotient itself or its complement.
  const V residual = Fma(-quotient, denominator.lo, Fma(-quotient, denominator.hi, numerator));
  return Fma(residual, If(negative, one - quotient, quotient), quotient);
}

// x + x^3 P(x^2) below 0.55, 1 - 2 / (e^2|x| + 1) above.
template <RecipeValue V>
V Tanh(V x) {
  using namespace internal;
  const V t = Magnitude(x);
  const V one = Num(x, 1);
  const V z = t * t;
  const V small = Fma(t * z, Polynomial(z, Tables<Scalar<V>>::kTanh), t);
  const V large = one - Num(x, 2) / (Exp(t + t) + one);
  return WithSign(If(t > Num(x, 0.55), large, small), x);
}

// x + x P(x^2) below 0.93, 1 - e^-(|x| + |x| Q(|x|)) above.
template <RecipeValue V>
V Erf(V x) {
  using namespace internal;
  const V t = Magnitude(x);
  const V z = t * t;
  const V small = Fma(t, Polynomial(z, Tables<Scalar<V>>::kErfSmall), t);
  const V end = Num(x, Format<V>::kF32 ? 4. : 6.);  // erf is 1 from there on
  const V u = If(t > end, end, t);
  const V large = Num(x, 1) - Exp(-Fma(u, Polynomial(u, Tables<Scalar<V>>::kErfLarge), u));
  return WithSign(If(t > Num(x, 0.93), large, small), x);
}

}  // namespace lazuli::hlo::recipes
