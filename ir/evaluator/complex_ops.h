// The recipes on complex numbers, in terms of the real ones. Branch cuts as in C; formulas after
// Kahan.
//
// A complex number is anything with a recipe value as its value_type: std::complex on the host, a
// pair of registers in generated code. Like the real recipes these choose and never branch.
#pragma once

#include <complex>
#include <cstdint>
#include <numbers>

#include "ir/recipes/recipes.h"

namespace lazuli::hlo::recipes {

template <class Z>
concept ComplexValue = requires(Z z) {
  typename Z::value_type;
  requires RecipeValue<typename Z::value_type>;
  z.real();
  z.imag();
};
template <class T>
inline constexpr bool kIsComplex = ComplexValue<T>;

// The complex numbers over a recipe value.
template <RecipeValue V>
struct ComplexOver {
  using Type = std::complex<V>;
};

namespace internal {

template <ComplexValue Z>
using Part = typename Z::value_type;

template <ComplexValue Z>
Z If(const Mask<Part<Z>>& mask, const Z& yes, const Z& no) {
  return {If(mask, yes.real(), no.real()), If(mask, yes.imag(), no.imag())};
}
template <ComplexValue Z>
Z ComplexNum(const Z& like, double re, double im) {
  return {Num(like.real(), re), Num(like.real(), im)};
}
template <ComplexValue Z>
Mask<Part<Z>> IsZero(const Z& z) {
  const Part<Z> zero = Num(z.real(), 0);
  return (z.real() == zero) & (z.imag() == zero);
}
template <ComplexValue Z>
Z Conjugate(const Z& z) {
  return {z.real(), -z.imag()};
}
// x with the sign of another number; as it is beside a NaN, whose sign depends on the machine.
template <RecipeValue V>
V Signed(V x, V sign) {
  return If(sign == sign, WithSign(x, sign), x);
}
// e^x t, sinh(x) t or cosh(x) t, where `grown` is that function of x over `share`, and t a sine or cosine: as in C, 0 where one of
// them is, and not infinite if it need not be where the function alone is.
template <RecipeValue V>
V Grown(V grown, V x, V t, double share) {
  const V one = Num(x, 1), inf = Num(x, Format<V>::kInf), zero = Num(x, 0);
  const V root = Exp(Abs(x) * Num(x, 0.5));
  const V far = WithSign(root, grown) * (Num(x, share) * t) * root;
  const V general = If(Abs(grown) == inf, far, grown * t);
  const V one_is_zero = If(grown == zero, Signed(zero, grown) * Signed(one, t), general);
  return If(t == zero, t * Signed(one, grown), one_is_zero);
}
// z i and z / i
template <ComplexValue Z>
Z TimesI(const Z& z) {
  return {-z.imag(), z.real()};
}
template <ComplexValue Z>
Z TimesMinusI(const Z& z) {
  return {z.imag(), -z.real()};
}

}  // namespace internal

// The opcode `complex`.
template <RecipeValue V>
typename ComplexOver<V>::Type Complex(V re, V im) {
  return {re, im};
}
template <ComplexValue Z>
internal::Part<Z> Real(Z z) {
  return z.real();
}
template <ComplexValue Z>
internal::Part<Z> Imag(Z z) {
  return z.imag();
}
template <ComplexValue Z>
Z Add(Z x, Z y) {
  return {x.real() + y.real(), x.imag() + y.imag()};
}
template <ComplexValue Z>
Z Subtract(Z x, Z y) {
  return {x.real() - y.real(), x.imag() - y.imag()};
}
template <ComplexValue Z>
Z Multiply(Z x, Z y) {
  return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
}
template <ComplexValue Z>
Z Negate(Z z) {
  return {-z.real(), -z.imag()};
}
// Smith's method: no overflow of the squared magnitude.
template <ComplexValue Z>
Z Divide(Z x, Z y) {
  using namespace internal;
  using V = Part<Z>;
  const V a = x.real(), b = x.imag(), c = y.real(), d = y.imag();
  const Mask<V> real_larger = Abs(c) >= Abs(d), by_zero = IsZero(y);
  const V larger = If(real_larger, c, d), smaller = If(real_larger, d, c);
  const V ratio = smaller / larger;
  const V denominator = If(by_zero, Abs(c), larger + smaller * ratio);
  const V re = If(real_larger, a, b) + If(real_larger, b, a) * ratio;
  const V im = If(real_larger, b - a * ratio, b * ratio - a);
  return {If(by_zero, a, re) / denominator, If(by_zero, b, im) / denominator};
}
// |z|
template <ComplexValue Z>
internal::Part<Z> Abs(Z z) {
  using namespace internal;
  using V = Part<Z>;
  const V a = Abs(z.real()), b = Abs(z.imag());
  const V one = Num(a, 1), inf = Num(a, Format<V>::kInf);
  const V larger = Maximum(a, b), smaller = Minimum(a, b);
  const V ratio = smaller / larger;
  const V general = larger * Sqrt(one + ratio * ratio);
  return If((a == inf) | (b == inf), inf, If(larger == Num(a, 0), larger, general));
}
template <ComplexValue Z>
Z Sign(Z z) {
  using namespace internal;
  const Part<Z> magnitude = Abs(z);
  return If(magnitude == Num(magnitude, 0), ComplexNum(z, 0, 0),
            Z{z.real() / magnitude, z.imag() / magnitude});
}
template <ComplexValue Z>
Z Sqrt(Z z) {
  using namespace internal;
  using V = Part<Z>;
  const V zero = Num(z.real(), 0), inf = Num(z.real(), Format<V>::kInf);
  const V magnitude = Abs(z);
  const V root = Sqrt((Abs(z.real()) + magnitude) * Num(zero, 0.5));
  const V other = z.imag() / (Num(zero, 2) * root);
  const Z general = If(z.real() >= zero, Z{root, other}, Z{Abs(other), WithSign(root, z.imag())});
  const Z finite = If(magnitude == zero, Z{zero, z.imag()}, general);
  return If(Abs(z.imag()) == inf, Z{inf, z.imag()}, finite);
}
template <ComplexValue Z>
Z Rsqrt(Z z) {
  return Divide(internal::ComplexNum(z, 1, 0), Sqrt(z));
}
template <ComplexValue Z>
Z Exp(Z z) {
  using namespace internal;
  using V = Part<Z>;
  const V x = z.real(), y = z.imag(), scale = Exp(x), inf = Num(x, Format<V>::kInf);
  // Without an angle what is infinite still has a size, and what vanishes has none.
  const Z turned{Grown(scale, x, Cos(y), 1), Grown(scale, x, Sin(y), 1)};
  const Z lost =
      If(x == inf, Z{inf, Num(x, Format<V>::kNan)}, If(x == -inf, Z{scale, scale}, turned));
  return If(y == Num(x, 0), Z{scale, y}, If(Abs(y) < inf, turned, lost));
}
template <ComplexValue Z>
Z Expm1(Z z) {
  using namespace internal;
  const Part<Z> half_sine = Sin(z.imag() * Num(z.real(), 0.5));
  return {Expm1(z.real()) * Cos(z.imag()) - Num(half_sine, 2) * half_sine * half_sine,
          Exp(z.real()) * Sin(z.imag())};
}
template <ComplexValue Z>
Z Log(Z z) {
  return {Log(Abs(z)), Atan2(z.imag(), z.real())};
}
template <ComplexValue Z>
Z Log1p(Z z) {
  using namespace internal;
  using V = Part<Z>;
  const V re = z.real(), im = z.imag(), half = Num(re, 0.5), one = Num(re, 1);
  const V near_zero = half * Log1p(re * (Num(re, 2) + re) + im * im);
  const V magnitude = If((Abs(re) < half) & (Abs(im) < half), near_zero, Log(Abs(Z{one + re, im})));
  return {magnitude, Atan2(im, one + re)};
}
template <ComplexValue Z>
Z Logistic(Z z) {
  const Z one = internal::ComplexNum(z, 1, 0);
  return Divide(one, Add(one, Exp(Negate(z))));
}
template <ComplexValue Z>
Z Tanh(Z z) {
  using namespace internal;
  using V = Part<Z>;
  const V x = z.real(), y = z.imag(), one = Num(x, 1);
  const V turn = Sin(y) * Cos(y), zero = Num(x, 0), inf = Num(x, Format<V>::kInf);
  const Z far{WithSign(one, x),
              If(Abs(x) == inf, Signed(zero, turn), Num(x, 4) * turn * Exp(Num(x, -2) * Abs(x)))};
  const V t = Tan(y), s = Sinh(x);
  const V beta = one + t * t, rho = Sqrt(one + s * s);
  const V denominator = one + beta * s * s;
  return If(Abs(x) > Num(x, Format<V>::kDigits), far,
            Z{If(x == zero, x, beta * rho * s / denominator), t / denominator});
}
template <ComplexValue Z>
Z Sin(Z z) {
  using namespace internal;
  const Part<Z> x = z.real(), y = z.imag();
  return {Grown(Cosh(y), y, Sin(x), 0.5), Grown(Sinh(y), y, Cos(x), 0.5)};
}
template <ComplexValue Z>
Z Cos(Z z) {
  using namespace internal;
  const Part<Z> x = z.real(), y = z.imag();
  return {Grown(Cosh(y), y, Cos(x), 0.5), Grown(Sinh(y), y, -Sin(x), 0.5)};
}
template <ComplexValue Z>
Z Tan(Z z) {
  return internal::TimesMinusI(Tanh(internal::TimesI(z)));
}
template <ComplexValue Z>
Z Sinh(Z z) {
  using namespace internal;
  const Part<Z> x = z.real(), y = z.imag();
  return {Grown(Sinh(x), x, Cos(y), 0.5), Grown(Cosh(x), x, Sin(y), 0.5)};
}
template <ComplexValue Z>
Z Cosh(Z z) {
  using namespace internal;
  const Part<Z> x = z.real(), y = z.imag();
  return {Grown(Cosh(x), x, Cos(y), 0.5), Grown(Sinh(x), x, Sin(y), 0.5)};
}
// x^0 and 1^y are 1 even for NaN. Powers of 0 and infinity are 0 or infinite for real exponents; 0
// has none for a negative one, and neither has any for another exponent.
template <ComplexValue Z>
Z Power(Z x, Z y) {
  using namespace internal;
  constexpr double kNan = Format<Part<Z>>::kNan, kInf = Format<Part<Z>>::kInf;
  const auto zero = Num(x.real(), 0);
  const auto is_real = x.imag() == zero;
  const auto positive = (y.real() > zero) & (y.imag() == zero);
  const auto negative = (y.real() < zero) & (y.imag() == zero);
  const auto infinite = (x.real() == Num(x.real(), kInf)) & is_real;
  const Z of_zero = If(positive, ComplexNum(x, 0, 0), ComplexNum(x, kNan, kNan));
  Z power = If(IsZero(x), of_zero, Exp(Multiply(y, Log(x))));
  power = If(infinite & positive, ComplexNum(x, kInf, 0), power);
  power = If(infinite & negative, ComplexNum(x, 0, 0), power);
  const auto is_one = (x.real() == Num(x.real(), 1)) & is_real;
  return If(IsZero(y) | is_one, ComplexNum(x, 1, 0), power);
}
// -i log((x + i y) / sqrt(x^2 + y^2))
template <ComplexValue Z>
Z Atan2(Z y, Z x) {
  const Z root = Sqrt(Add(Multiply(x, x), Multiply(y, y)));
  return internal::TimesMinusI(Log(Divide(Add(x, internal::TimesI(y)), root)));
}

namespace internal {

// sqrt(1 - z) and sqrt(1 + z)
template <ComplexValue Z>
struct Roots {
  explicit Roots(const Z& z)
      : minus(Sqrt(Z{Num(z.real(), 1) - z.real(), -z.imag()})),
        plus(Sqrt(Z{Num(z.real(), 1) + z.real(), z.imag()})) {}
  Z minus, plus;
};
template <ComplexValue Z>
Mask<Part<Z>> IsInfinite(const Z& z) {
  const Part<Z> inf = Num(z.real(), Format<Part<Z>>::kInf);
  return (Abs(z.real()) == inf) | (Abs(z.imag()) == inf);
}
// Where an infinite z lies: parts of 1 and 0.
template <ComplexValue Z>
Z DirectionOf(const Z& z) {
  using V = Part<Z>;
  const V one = Num(z.real(), 1), zero = Num(one, 0), inf = Num(one, Format<V>::kInf);
  const auto along = [&](V part) { return If(Abs(part) == inf, WithSign(one, part), part * zero); };
  return {along(z.real()), along(z.imag())};
}

}  // namespace internal

template <ComplexValue Z>
Z Asin(Z z) {
  using namespace internal;
  const Roots<Z> roots(z);
  const Z finite{Atan2(z.real(), Multiply(roots.minus, roots.plus).real()),
                 Asinh(Multiply(Conjugate(roots.minus), roots.plus).imag())};
  const Z direction = DirectionOf(z);
  const Part<Z> inf = Num(z.real(), Format<Part<Z>>::kInf);
  return If(IsInfinite(z), Z{Atan2(direction.real(), Abs(direction.imag())), Signed(inf, z.imag())},
            finite);
}
template <ComplexValue Z>
Z Acos(Z z) {
  using namespace internal;
  const Roots<Z> roots(z);
  const Z finite{Num(z.real(), 2) * Atan2(roots.minus.real(), roots.plus.real()),
                 Asinh(Multiply(Conjugate(roots.plus), roots.minus).imag())};
  const Z direction = DirectionOf(z);
  const Part<Z> inf = Num(z.real(), Format<Part<Z>>::kInf);
  return If(IsInfinite(z),
            Z{Atan2(Abs(direction.imag()), direction.real()), -Signed(inf, z.imag())}, finite);
}
template <ComplexValue Z>
Z Acosh(Z z) {
  using namespace internal;
  const Part<Z> one = Num(z.real(), 1);
  const Z minus = Sqrt(Z{z.real() - one, z.imag()}), plus = Sqrt(Z{z.real() + one, z.imag()});
  const Z finite{Asinh(Multiply(Conjugate(minus), plus).real()),
                 Num(one, 2) * Atan2(minus.imag(), plus.real())};
  const Z direction = DirectionOf(z);
  const Part<Z> angle = Atan2(Abs(direction.imag()), direction.real());
  return If(IsInfinite(z), Z{Num(one, Format<Part<Z>>::kInf), WithSign(angle, z.imag())}, finite);
}
template <ComplexValue Z>
Z Asinh(Z z) {
  return internal::TimesMinusI(Asin(internal::TimesI(z)));
}
template <ComplexValue Z>
Z Atanh(Z z) {
  using namespace internal;
  using V = Part<Z>;
  const V x = z.real(), y = z.imag(), one = Num(x, 1), quarter = Num(x, 0.25);
  const V above = (one + x) * (one + x) + y * y, below = (one - x) * (one - x) + y * y;
  // log(above / below) / 4, by log1p where the quotient is near 1, and by a size whose square is too small near the poles.
  const V small = Num(x, 1.0 / static_cast<double>(int64_t{1} << 40));
  const auto log = [&](V square, V part) {
    return If(square < small, Num(x, 2) * Log(Abs(Z{part, y})), Log(square));
  };
  const V near =
      If((Abs(x) < Num(x, 0.5) * above) & (below >= small), quarter * Log1p(Num(x, 4) * x / below),
         quarter * (log(above, one + x) - log(below, one - x)));
  const V im = Num(x, 0.5) * Atan2(Num(x, 2) * y, (one - x) * (one + x) - y * y);
  // Far from 0, where squares may overflow, the real part is that of 1 / z to the last bit.
  const V size = Maximum(Abs(x), Abs(y)), u = x / size, v = y / size;
  const V limit = Num(x, static_cast<double>(int64_t{1} << (Format<V>::kDigits / 2 + 1)));
  const Z finite{If(size > limit, u / (u * u + v * v) / size, near), im};
  const V inf = Num(x, Format<V>::kInf), half_pi = Num(x, std::numbers::pi / 2);
  return If((Abs(x) == inf) | (Abs(y) == inf),
            Z{WithSign(Num(x, 0), x), If(y == y, WithSign(half_pi, y), y)}, finite);
}
template <ComplexValue Z>
Z Atan(Z z) {
  return internal::TimesMinusI(Atanh(internal::TimesI(z)));
}

}  // namespace lazuli::hlo::recipes
