// Recipes of the arithmetic opcodes: one rounding at most.
#pragma once

#include "ir/recipes/vocabulary.h"

namespace lazuli::hlo::recipes {

template <RecipeValue V>
V Add(V x, V y) {
  return x + y;
}
template <RecipeValue V>
V Subtract(V x, V y) {
  return x - y;
}
template <RecipeValue V>
V Multiply(V x, V y) {
  return x * y;
}
template <RecipeValue V>
V Divide(V x, V y) {
  return x / y;
}
template <RecipeValue V>
V Remainder(V x, V y) {
  return Ops<V>::Fmod(x, y);
}
template <RecipeValue V>
V Negate(V x) {
  return -x;
}
template <RecipeValue V>
V Abs(V x) {
  return internal::Magnitude(x);
}
// -1, 1, the zero itself, or NaN.
template <RecipeValue V>
V Sign(V x) {
  using namespace internal;
  return If((x < Num(x, 0)) | (x > Num(x, 0)), WithSign(Num(x, 1), x), x);
}
template <RecipeValue V>
V Floor(V x) {
  return Ops<V>::Floor(x);
}
template <RecipeValue V>
V Ceil(V x) {
  return -Ops<V>::Floor(-x);
}
template <RecipeValue V>
V RoundNearestEven(V x) {
  return Ops<V>::RoundEven(x);
}
template <RecipeValue V>
V RoundNearestAfz(V x) {
  using namespace internal;
  // The number below 1/2: adding 1/2 itself would round 0.49999997 up.
  const double below_half = Format<V>::kF32 ? 0x1.fffffep-2 : 0x1.fffffffffffffp-2;
  return WithSign(Ops<V>::Floor(Magnitude(x) + Num(x, below_half)), x);
}
template <RecipeValue V>
V Sqrt(V x) {
  return Ops<V>::Sqrt(x);
}
template <RecipeValue V>
V Rsqrt(V x) {
  return internal::Num(x, 1) / Ops<V>::Sqrt(x);
}
template <RecipeValue V>
typename Ops<V>::Mask IsFinite(V x) {
  return internal::Magnitude(x) < internal::Num(x, internal::Format<V>::kInf);
}
// IEEE 754-2019 maximum and minimum: NaN if either is, and -0 < +0.
template <RecipeValue V>
V Maximum(V x, V y) {
  using namespace internal;
  const V ordered =
      If(x > y, x, If(x == y, Ops<V>::FromBits(Ops<V>::ToBits(x) & Ops<V>::ToBits(y)), y));
  return If(x != x, x, ordered);
}
template <RecipeValue V>
V Minimum(V x, V y) {
  using namespace internal;
  const V ordered =
      If(x < y, x, If(x == y, Ops<V>::FromBits(Ops<V>::ToBits(x) | Ops<V>::ToBits(y)), y));
  return If(x != x, x, ordered);
}
template <RecipeValue V>
V Real(V x) {
  return x;
}
template <RecipeValue V>
V Imag(V x) {
  return internal::Num(x, 0);
}

}  // namespace lazuli::hlo::recipes
