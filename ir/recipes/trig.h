// Recipes of sine, cosine and tangent, for arguments of any size.
#pragma once

#include <iterator>

#include "ir/recipes/tables.h"
#include "ir/recipes/vocabulary.h"

namespace lazuli::hlo::recipes {

namespace internal {

// t = (quadrant + 4 j) pi / 2 + r, |r| <= pi / 4, for t >= 0.
template <class V>
struct Reduced {
  Int<V> quadrant;  // in the two low bits
  Pair<V> r;
};

// Payne and Hanek's reduction with chunks of 2/pi as wide as a mantissa. Chunks whose product with
// t is a multiple of 4 are skipped (and t scaled down instead, which keeps everything in range);
// five of the rest give 2 / pi t mod 4 with an error far below the distance of any t from a
// multiple of pi / 2. One path for all sizes: selects cost less than a second reduction.
template <class V>
Reduced<V> Reduce(const V& t) {
  constexpr int kDigits = Format<V>::kDigits;
  constexpr int kChunks = 5;
  constexpr int kMaxSkip = Format<V>::kBias / kDigits - 1;
  const auto& table = Tables<Scalar<V>>::kTwoOverPi;
  static_assert(std::size(Tables<Scalar<V>>::kTwoOverPi) >= kMaxSkip + kChunks);
  V chunk[kChunks] = {Num(t, 0), Num(t, 0), Num(t, 0), Num(t, 0), Num(t, 0)};
  auto weighted = [&](int skip, int i) {
    return Num(t, std::ldexp(table[skip + i], -kDigits * (i + 1)));
  };
  for (int i = 0; i < kChunks; ++i) chunk[i] = weighted(0, i);
  V scale = Num(t, 1);
  for (int skip = 1; skip <= kMaxSkip; ++skip) {
    const Mask<V> large = t >= Num(t, std::ldexp(1., kDigits * (skip + 1) + 1));
    scale = If(large, Num(t, std::ldexp(1., -kDigits * skip)), scale);
    for (int i = 0; i < kChunks; ++i) chunk[i] = If(large, weighted(skip, i), chunk[i]);
  }
  const V x = t * scale;

  // The products as terms in falling order, the large ones without their multiples of 4.
  auto mod4 = [](const V& v) { return Fma(Num(v, -4), Ops<V>::RoundEven(v * Num(v, 0.25)), v); };
  V terms[2 * kChunks] = {x, x, x, x, x, x, x, x, x, x};
  for (int i = 0; i < kChunks; ++i) {
    const Pair<V> product = TwoProduct(x, chunk[i]);
    terms[2 * i] = i < 2 ? mod4(product.hi) : product.hi;
    terms[2 * i + 1] = i < 1 ? mod4(product.lo) : product.lo;
  }
  // Two sweeps from the small end: the first gives the integer, the second what is left of the
  // fraction after a cancellation.
  auto sweep = [&terms](int first) {
    for (int i = 2 * kChunks - 2; i >= first; --i) {
      const Pair<V> sum = TwoSum(terms[i], terms[i + 1]);
      terms[i] = sum.hi;
      terms[i + 1] = sum.lo;
    }
  };
  sweep(0);
  const V rounder = Num(t, Format<V>::kRounder);
  const V shifted = terms[0] + rounder;
  terms[0] = terms[0] - (shifted - rounder);
  sweep(0);
  V low = terms[2 * kChunks - 1];
  for (int i = 2 * kChunks - 2; i > 0; --i) low = low + terms[i];

  constexpr bool kF32 = Format<V>::kF32;
  const Pair<V> half_pi{Num(t, kF32 ? 0x1.921fb6p+0 : 0x1.921fb54442d18p+0),
                        Num(t, kF32 ? -0x1.777a5cp-25 : 0x1.1a62633145c07p-54)};
  return {Ops<V>::ToBits(shifted), Product(FastTwoSum(terms[0], low), half_pi)};
}

template <class V>
V SinOfReduced(const Pair<V>& r) {
  const V z = r.hi * r.hi;
  const V low = Fma(z * Num(z, -0.5), r.lo, r.lo);
  return r.hi + Fma(r.hi * z, Polynomial(z, Tables<Scalar<V>>::kSin), low);
}
template <class V>
V CosOfReduced(const Pair<V>& r) {
  const V one = Num(r.hi, 1);
  const V z = r.hi * r.hi;
  const V half = z * Num(z, 0.5);
  const V w = one - half;
  return w +
         (((one - w) - half) + Fma(z * z, Polynomial(z, Tables<Scalar<V>>::kCos), -(r.hi * r.lo)));
}

template <class V>
Mask<V> HasBit(const Int<V>& bits, int bit, const V& like) {
  return (bits & IntNum(like, bit)) == IntNum(like, bit);
}
// The second bit of the quadrant as a sign bit.
template <class V>
Int<V> QuadrantSign(const Int<V>& quadrant, const V& like) {
  return Ops<V>::ShiftLeft(quadrant, Format<V>::kF32 ? 30 : 62) & IntNum(like, Format<V>::kSign);
}
// Below this sin(x) is x to within half a unit in the last place; the products of the reduction
// would underflow further down.
template <class V>
inline constexpr double kTinyAngle = Format<V>::kF32 ? 0x1p-12 : 0x1p-27;

}  // namespace internal

template <RecipeValue V>
V Sin(V x) {
  using namespace internal;
  const V t = Magnitude(x);
  const Reduced<V> reduced = Reduce(t);
  const V value =
      If(HasBit(reduced.quadrant, 1, x), CosOfReduced(reduced.r), SinOfReduced(reduced.r));
  const V result = FlipSign(FlipSign(value, QuadrantSign(reduced.quadrant, x)), SignBit(x));
  return If(t < Num(x, kTinyAngle<V>), x, result);
}

template <RecipeValue V>
V Cos(V x) {
  using namespace internal;
  const V t = Magnitude(x);
  const Reduced<V> reduced = Reduce(t);
  const V value =
      If(HasBit(reduced.quadrant, 1, x), SinOfReduced(reduced.r), CosOfReduced(reduced.r));
  const V result = FlipSign(value, QuadrantSign(reduced.quadrant + IntNum(x, 1), x));
  return If(t < Num(x, kTinyAngle<V>), Num(x, 1), result);
}

template <RecipeValue V>
V Tan(V x) {
  using namespace internal;
  const V t = Magnitude(x);
  const Reduced<V> reduced = Reduce(t);
  const V s = SinOfReduced(reduced.r), c = CosOfReduced(reduced.r);
  const Mask<V> odd = HasBit(reduced.quadrant, 1, x);
  const V value = If(odd, -c, s) / If(odd, s, c);
  return If(t < Num(x, kTinyAngle<V>), x, FlipSign(value, SignBit(x)));
}

}  // namespace lazuli::hlo::recipes
