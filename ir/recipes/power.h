// Recipes of power and cube root: 2^(y log2|x|) with the logarithm and the product in twice the
// precision.
#pragma once

#include "ir/recipes/exp_log.h"

namespace lazuli::hlo::recipes {

namespace internal {

// log2(x) for x > 0 to about 36 bits (f32), 65 bits (f64).
template <class V>
Pair<V> Log2(const V& x) {
  constexpr bool kF32 = Format<V>::kF32;
  const LogParts<V> parts = SplitLogOfAny(x);
  const V one = Num(x, 1);
  const V f = parts.m - one;
  // s = f / (2 + f)
  const V d_high = parts.m + one;
  const V d_low = parts.m - (d_high - one);
  const V s_high = f / d_high;
  const Pair<V> s{s_high, Fma(-s_high, d_low, Fma(-s_high, d_high, f)) / d_high};
  const Pair<V> z = Product(s, s);
  // s (c1 + z (c3 + z T(z))), c1 = 2 / ln(2), c3 = c1 / 3
  const Pair<V> c1{Num(x, kF32 ? 0x1.715476p+1 : 0x1.71547652b82fep+1),
                   Num(x, kF32 ? 0x1.4ae0c0p-25 : 0x1.777d0ffda0d24p-55)};
  const Pair<V> c3{Num(x, kF32 ? 0x1.ec709ep-1 : 0x1.ec709dc3a03fdp-1),
                   Num(x, kF32 ? -0x1.e2fe02p-28 : 0x1.d27f05548af0cp-55)};
  const Pair<V> inner = FastTwoSum(c3.hi, z.hi * Polynomial(z.hi, Tables<Scalar<V>>::kLog2Tail));
  const Pair<V> middle = Product(z, {inner.hi, inner.lo + c3.lo});
  const Pair<V> outer = FastTwoSum(c1.hi, middle.hi);
  const Pair<V> log_m = Product(s, {outer.hi, outer.lo + (middle.lo + c1.lo)});
  const Pair<V> sum = FastTwoSum(FromSmallInt(x, parts.k), log_m.hi);
  return {sum.hi, sum.lo + log_m.lo};
}

// 2^(x.hi + x.lo), inf and 0 where it leaves the range; x.lo is ignored there.
template <class V>
V Exp2(const Pair<V>& x) {
  constexpr bool kF32 = Format<V>::kF32;
  const V limit = Num(x.hi, kF32 ? 160. : 1100.);
  const Mask<V> inside = Magnitude(x.hi) < limit;
  const V high = If(inside, x.hi, If(x.hi != x.hi, x.hi, WithSign(limit, x.hi)));
  const V low = If(inside, x.lo, Num(x.hi, 0));
  const V rounder = Num(high, Format<V>::kRounder);
  const V shifted = high + rounder;
  const V r = (high - (shifted - rounder)) + low;
  // 2^r = 1 + r ln(2) + r^2 Q(r), the second term in twice the precision.
  const Pair<V> ln2{Num(high, kF32 ? 0x1.62e430p-1 : 0x1.62e42fefa39efp-1),
                    Num(high, kF32 ? -0x1.05c610p-29 : 0x1.abc9e3b39803fp-56)};
  const Pair<V> linear = TwoProduct(r, ln2.hi);
  const V rest = Fma(r * r, Polynomial(r, Tables<Scalar<V>>::kExp2), Fma(r, ln2.lo, linear.lo));
  const Pair<V> sum = FastTwoSum(Num(high, 1), linear.hi);
  return Scale(sum.hi + (sum.lo + rest),
               Ops<V>::ToBits(shifted) - IntNum(high, Format<V>::kRounderBits));
}

}  // namespace internal

// C's pow, special cases included: x^0 and 1^y are 1 even for NaN.
template <RecipeValue V>
V Power(V x, V y) {
  using namespace internal;
  const V zero = Num(x, 0), one = Num(x, 1), inf = Num(x, Format<V>::kInf);
  const V t = Magnitude(x);
  const Pair<V> log = Log2(t);
  const Pair<V> product = TwoProduct(log.hi, y);
  const V general = Exp2<V>({product.hi, Fma(log.lo, y, product.lo)});
  const Mask<V> y_negative = y < zero;
  V magnitude = If(t == zero, If(y_negative, inf, zero), general);
  magnitude = If(t == inf, If(y_negative, zero, inf), magnitude);
  magnitude = If(t == one, one, magnitude);
  // A negative base wants an integral exponent, and an odd one makes the result negative (also of
  // -0 and -inf).
  const V half = y * Num(x, 0.5);
  const Mask<V> integral = Ops<V>::Floor(y) == y;
  const Mask<V> odd = integral & (Ops<V>::Floor(half) != half);
  const V negated = If(odd, FlipSign(magnitude, SignBit(x)), magnitude);
  const V with_sign = If((x < zero) & (t < inf) & !integral, Num(x, Format<V>::kNan), negated);
  const V with_nan = If((x != x) | (y != y), x + y, with_sign);
  return If((y == zero) | (x == one), one, with_nan);
}

template <RecipeValue V>
V Cbrt(V x) {
  using namespace internal;
  constexpr bool kF32 = Format<V>::kF32;
  const V t = Magnitude(x);
  const Pair<V> third{Num(x, kF32 ? 0x1.555556p-2 : 0x1.5555555555555p-2),
                      Num(x, kF32 ? -0x1.555556p-27 : 0x1.5555555555555p-56)};
  const V general = WithSign(Exp2(Product(Log2(t), third)), x);
  return If((t > Num(x, 0)) & (t < Num(x, Format<V>::kInf)), general, x);
}

}  // namespace lazuli::hlo::recipes
