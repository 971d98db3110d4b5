// Recipes of the inverse trigonometric functions, the hyperbolic ones and their inverses.
#pragma once

#include "ir/recipes/exp_log.h"

namespace lazuli::hlo::recipes {

namespace internal {

template <class V>
Pair<V> HalfPi(const V& like) {
  constexpr bool kF32 = Format<V>::kF32;
  return {Num(like, kF32 ? 0x1.921fb6p+0 : 0x1.921fb54442d18p+0),
          Num(like, kF32 ? -0x1.777a5cp-25 : 0x1.1a62633145c07p-54)};
}

// atan(y / x) for x, y >= 0 whose sum is finite and of which the larger is well above the
// subnormals: atan(u) + 0, pi / 4 or pi / 2 with |u| <= tan(pi / 8) and one division.
template <class V>
Pair<V> AtanOfQuotient(const V& y, const V& x) {
  const double tangent = 0.41421356237309503;  // tan(pi / 8)
  const Mask<V> below = y <= x * Num(x, tangent);
  const Mask<V> above = x <= y * Num(x, tangent);
  const V numerator = If(below, y, If(above, -x, y - x));
  const V denominator = If(below, x, If(above, y, y + x));
  const V zero = Num(x, 0);
  const V u = If(denominator == zero, zero, numerator / denominator);
  const Pair<V> half_pi = HalfPi(x);
  const V share = If(below, zero, If(above, Num(x, 1), Num(x, 0.5)));
  const V z = u * u;
  const Pair<V> sum = FastTwoSum(share * half_pi.hi, u);
  return {sum.hi,
          Fma(u * z, Polynomial(z, Tables<Scalar<V>>::kAtan), Fma(share, half_pi.lo, sum.lo))};
}

// asin(s) - s for 0 <= s <= 1/2.
template <class V>
V AsinTail(const V& s) {
  const V z = s * s;
  return s * z * Polynomial(z, Tables<Scalar<V>>::kAsin);
}
// asin(sqrt((1 - t) / 2)) for 1/2 <= t <= 1: the sum of the two. NaN for t > 1.
template <class V>
Pair<V> HalfAngle(const V& t) {
  const V z = Num(t, 0.5) * (Num(t, 1) - t);
  const V s = Ops<V>::Sqrt(z);
  const V residual = Fma(-s, s, z) / (s + s);
  return {s, AsinTail(s) + If(s > Num(t, 0), residual, Num(t, 0))};
}

// log(2) where x is so large that log(f(x)) was replaced by log(x) for an f(x) near 2 x.
template <class V>
inline constexpr double kHugeForLog = Format<V>::kF32 ? 0x1p25 : 0x1p54;

}  // namespace internal

template <RecipeValue V>
V Atan(V x) {
  using namespace internal;
  const V t = Magnitude(x);
  const V limit = Num(x, Format<V>::kF32 ? 0x1p60 : 0x1p500);
  const Pair<V> angle = AtanOfQuotient(If(t > limit, limit, t), Num(x, 1));
  return WithSign(angle.hi + angle.lo, x);
}

template <RecipeValue V>
V Atan2(V y, V x) {
  using namespace internal;
  const V inf = Num(x, Format<V>::kInf), zero = Num(x, 0);
  // Infinities become 1 and the other argument 0 (unless infinite too); then both are scaled so
  // that sums stay finite and multiples of tan(pi / 8) normal.
  const V ay = Magnitude(y), ax = Magnitude(x);
  const Mask<V> any_inf = (ay == inf) | (ax == inf);
  const V ty = If(any_inf, If(ay == inf, Num(x, 1), zero), ay);
  const V tx = If(any_inf, If(ax == inf, Num(x, 1), zero), ax);
  const V larger = If(ty > tx, ty, tx);
  const V big = Num(x, Format<V>::kF32 ? 0x1p125 : 0x1p1021), down = Num(x, 0x1p-4);
  const V small = Num(x, Format<V>::kF32 ? 0x1p-100 : 0x1p-900),
          up = Num(x, Format<V>::kF32 ? 0x1p64 : 0x1p512);
  const V scale = If(larger > big, down, If(larger < small, up, Num(x, 1)));
  const Pair<V> angle = AtanOfQuotient(ty * scale, tx * scale);
  const Mask<V> left = Ops<V>::ToBits(x) < IntNum(x, 0);  // -0 too
  const Pair<V> half_pi = HalfPi(x);
  const Pair<V> flipped = TwoSum(half_pi.hi + half_pi.hi, -angle.hi);
  const V supplement = flipped.hi + ((flipped.lo - angle.lo) + (half_pi.lo + half_pi.lo));
  const V result = WithSign(If(left, supplement, angle.hi + angle.lo), y);
  return If((x != x) | (y != y), x + y, result);
}

template <RecipeValue V>
V Asin(V x) {
  using namespace internal;
  const V t = Magnitude(x);
  const Pair<V> half_pi = HalfPi(x);
  const Pair<V> half = HalfAngle(t);
  const Pair<V> sum = FastTwoSum(half_pi.hi, Num(x, -2) * half.hi);
  const V large = sum.hi + (sum.lo + Fma(Num(x, -2), half.lo, half_pi.lo));
  return WithSign(If(t > Num(x, 0.5), large, t + AsinTail(t)), x);
}

template <RecipeValue V>
V Acos(V x) {
  using namespace internal;
  const V t = Magnitude(x);
  const Pair<V> half_pi = HalfPi(x);
  const Pair<V> half = HalfAngle(t);
  const V near_one = Num(x, 2) * (half.hi + half.lo);
  const Pair<V> opposite = FastTwoSum(half_pi.hi + half_pi.hi, Num(x, -2) * half.hi);
  const V near_minus_one = opposite.hi + (opposite.lo + Num(x, 2) * (half_pi.lo - half.lo));
  const Pair<V> right = FastTwoSum(half_pi.hi, -x);
  const V middle = right.hi + (right.lo + (half_pi.lo - WithSign(AsinTail(t), x)));
  return If(t > Num(x, 0.5), If(x > Num(x, 0), near_one, near_minus_one), middle);
}

template <RecipeValue V>
V Sinh(V x) {
  using namespace internal;
  const V t = Magnitude(x);
  const V z = t * t;
  const V small = Fma(t * z, Polynomial(z, Tables<Scalar<V>>::kSinh), t);
  const V half_exp = ExpTimesPowerOfTwo(t, -1);
  return WithSign(If(t > Num(x, 1), half_exp - Num(x, 0.25) / half_exp, small), x);
}

template <RecipeValue V>
V Cosh(V x) {
  using namespace internal;
  const V half_exp = ExpTimesPowerOfTwo(Magnitude(x), -1);
  return half_exp + Num(x, 0.25) / half_exp;
}

template <RecipeValue V>
V Asinh(V x) {
  using namespace internal;
  const V t = Magnitude(x);
  const V one = Num(x, 1);
  const Mask<V> huge = t > Num(x, kHugeForLog<V>);
  const V square = t * t;
  const V moderate = t + square / (one + Ops<V>::Sqrt(one + square));
  const V log = Log1p(If(huge, t, moderate));
  return WithSign(If(huge, log + Num(x, 0x1.62e42fefa39efp-1), log), x);
}

template <RecipeValue V>
V Acosh(V x) {
  using namespace internal;
  const Mask<V> huge = x > Num(x, kHugeForLog<V>);
  const V t = x - Num(x, 1);
  const V log = Log1p(If(huge, x, t + Ops<V>::Sqrt(t * (t + Num(x, 2)))));
  const V result = If(huge, log + Num(x, 0x1.62e42fefa39efp-1), log);
  return If(x < Num(x, 1), Num(x, Format<V>::kNan), result);
}

template <RecipeValue V>
V Atanh(V x) {
  using namespace internal;
  const V t = Magnitude(x);
  const V one = Num(x, 1);
  const V twice = t + t;
  const V argument = If(t < Num(x, 0.5), twice + twice * t / (one - t), twice / (one - t));
  return WithSign(Num(x, 0.5) * Log1p(argument), x);
}

}  // namespace lazuli::hlo::recipes
