// The recipes on complex numbers, in terms of the real ones. Branch cuts as in C; formulas after
// Kahan.
#pragma once

#include <complex>

#include "ir/evaluator/recipes.h"

namespace lazuli::hlo::recipes {

template <class T>
inline constexpr bool kIsComplex = false;
template <class S>
inline constexpr bool kIsComplex<std::complex<S>> = true;

template <RecipeValue S>
using C = std::complex<S>;

// The opcode `complex`.
template <RecipeValue S>
C<S> Complex(S re, S im) {
  return {re, im};
}
template <RecipeValue S>
S Real(C<S> z) {
  return z.real();
}
template <RecipeValue S>
S Imag(C<S> z) {
  return z.imag();
}
template <RecipeValue S>
C<S> Add(C<S> x, C<S> y) {
  return {x.real() + y.real(), x.imag() + y.imag()};
}
template <RecipeValue S>
C<S> Subtract(C<S> x, C<S> y) {
  return {x.real() - y.real(), x.imag() - y.imag()};
}
template <RecipeValue S>
C<S> Multiply(C<S> x, C<S> y) {
  return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
}
template <RecipeValue S>
C<S> Negate(C<S> z) {
  return {-z.real(), -z.imag()};
}
template <RecipeValue S>
C<S> Scaled(C<S> z, S factor) {
  return {z.real() * factor, z.imag() * factor};
}
// z i^quarter_turns
template <RecipeValue S>
C<S> TimesI(C<S> z) {
  return {-z.imag(), z.real()};
}
template <RecipeValue S>
C<S> TimesMinusI(C<S> z) {
  return {z.imag(), -z.real()};
}
// Smith's method: no overflow of the squared magnitude.
template <RecipeValue S>
C<S> Divide(C<S> x, C<S> y) {
  const S a = x.real(), b = x.imag(), c = y.real(), d = y.imag();
  if (c == 0 && d == 0) return {a / Abs(c), b / Abs(c)};
  if (Abs(c) >= Abs(d)) {
    const S ratio = d / c, denominator = c + d * ratio;
    return {(a + b * ratio) / denominator, (b - a * ratio) / denominator};
  }
  const S ratio = c / d, denominator = c * ratio + d;
  return {(a * ratio + b) / denominator, (b * ratio - a) / denominator};
}
// |z|
template <RecipeValue S>
S Abs(C<S> z) {
  const S inf = std::numeric_limits<S>::infinity();
  const S a = Abs(z.real()), b = Abs(z.imag());
  if (a == inf || b == inf) return inf;
  const S larger = Maximum(a, b), smaller = Minimum(a, b);
  if (larger == 0) return larger;
  const S ratio = smaller / larger;
  return larger * Sqrt(S{1} + ratio * ratio);
}
template <RecipeValue S>
C<S> Sign(C<S> z) {
  const S magnitude = Abs(z);
  return magnitude == 0 ? C<S>(0, 0) : C<S>(z.real() / magnitude, z.imag() / magnitude);
}
template <RecipeValue S>
C<S> Sqrt(C<S> z) {
  const S magnitude = Abs(z);
  if (magnitude == 0) return {0, z.imag()};
  if (Abs(z.imag()) == std::numeric_limits<S>::infinity())
    return {std::numeric_limits<S>::infinity(), z.imag()};
  const S root = Sqrt((Abs(z.real()) + magnitude) * S(0.5));
  const S other = z.imag() / (S{2} * root);
  if (z.real() >= 0) return {root, other};
  return {Abs(other), internal::WithSign(root, z.imag())};
}
template <RecipeValue S>
C<S> Rsqrt(C<S> z) {
  return Divide(C<S>(1, 0), Sqrt(z));
}
template <RecipeValue S>
C<S> Exp(C<S> z) {
  const S scale = Exp(z.real());
  if (z.imag() == 0) return {scale, z.imag()};
  return {scale * Cos(z.imag()), scale * Sin(z.imag())};
}
template <RecipeValue S>
C<S> Expm1(C<S> z) {
  const S half_sine = Sin(z.imag() * S(0.5));
  return {Expm1(z.real()) * Cos(z.imag()) - S{2} * half_sine * half_sine,
          Exp(z.real()) * Sin(z.imag())};
}
template <RecipeValue S>
C<S> Log(C<S> z) {
  return {Log(Abs(z)), Atan2(z.imag(), z.real())};
}
template <RecipeValue S>
C<S> Log1p(C<S> z) {
  const S re = z.real(), im = z.imag();
  const bool near_zero = Abs(re) < S(0.5) && Abs(im) < S(0.5);
  const S magnitude =
      near_zero ? S(0.5) * Log1p(re * (S{2} + re) + im * im) : Log(Abs(C<S>(S{1} + re, im)));
  return {magnitude, Atan2(im, S{1} + re)};
}
template <RecipeValue S>
C<S> Logistic(C<S> z) {
  return Divide(C<S>(1, 0), Add(C<S>(1, 0), Exp(Negate(z))));
}
template <RecipeValue S>
C<S> Tanh(C<S> z) {
  const S x = z.real(), y = z.imag();
  if (Abs(x) > S(std::numeric_limits<S>::digits)) {
    return {internal::WithSign(S{1}, x), S{4} * Sin(y) * Cos(y) * Exp(S{-2} * Abs(x))};
  }
  const S t = Tan(y), s = Sinh(x);
  const S beta = S{1} + t * t, rho = Sqrt(S{1} + s * s);
  const S denominator = S{1} + beta * s * s;
  return {beta * rho * s / denominator, t / denominator};
}
template <RecipeValue S>
C<S> Sin(C<S> z) {
  return {Sin(z.real()) * Cosh(z.imag()), Cos(z.real()) * Sinh(z.imag())};
}
template <RecipeValue S>
C<S> Cos(C<S> z) {
  return {Cos(z.real()) * Cosh(z.imag()), -Sin(z.real()) * Sinh(z.imag())};
}
template <RecipeValue S>
C<S> Tan(C<S> z) {
  return TimesMinusI(Tanh(TimesI(z)));
}
template <RecipeValue S>
C<S> Sinh(C<S> z) {
  return {Sinh(z.real()) * Cos(z.imag()), Cosh(z.real()) * Sin(z.imag())};
}
template <RecipeValue S>
C<S> Cosh(C<S> z) {
  return {Cosh(z.real()) * Cos(z.imag()), Sinh(z.real()) * Sin(z.imag())};
}
template <RecipeValue S>
C<S> Power(C<S> x, C<S> y) {
  if (y == C<S>(0, 0)) return {1, 0};
  if (x == C<S>(0, 0)) return {0, 0};
  return Exp(Multiply(y, Log(x)));
}
// -i log((x + i y) / sqrt(x^2 + y^2))
template <RecipeValue S>
C<S> Atan2(C<S> y, C<S> x) {
  const C<S> root = Sqrt(Add(Multiply(x, x), Multiply(y, y)));
  return TimesMinusI(Log(Divide(Add(x, TimesI(y)), root)));
}
template <RecipeValue S>
C<S> Asin(C<S> z) {
  const C<S> minus = Sqrt(C<S>(S{1} - z.real(), -z.imag())),
             plus = Sqrt(C<S>(S{1} + z.real(), z.imag()));
  return {Atan2(z.real(), Multiply(minus, plus).real()),
          Asinh(Multiply(std::conj(minus), plus).imag())};
}
template <RecipeValue S>
C<S> Acos(C<S> z) {
  const C<S> minus = Sqrt(C<S>(S{1} - z.real(), -z.imag())),
             plus = Sqrt(C<S>(S{1} + z.real(), z.imag()));
  return {S{2} * Atan2(minus.real(), plus.real()), Asinh(Multiply(std::conj(plus), minus).imag())};
}
template <RecipeValue S>
C<S> Acosh(C<S> z) {
  const C<S> minus = Sqrt(C<S>(z.real() - S{1}, z.imag())),
             plus = Sqrt(C<S>(z.real() + S{1}, z.imag()));
  return {Asinh(Multiply(std::conj(minus), plus).real()), S{2} * Atan2(minus.imag(), plus.real())};
}
template <RecipeValue S>
C<S> Asinh(C<S> z) {
  return TimesMinusI(Asin(TimesI(z)));
}
template <RecipeValue S>
C<S> Atanh(C<S> z) {
  const S x = z.real(), y = z.imag();
  const S above = (S{1} + x) * (S{1} + x) + y * y, below = (S{1} - x) * (S{1} - x) + y * y;
  // log(above / below) / 4, by log1p where the quotient is near 1.
  const S re = Abs(x) < S(0.5) * above ? S(0.25) * Log1p(S{4} * x / below)
                                       : S(0.25) * (Log(above) - Log(below));
  return {re, S(0.5) * Atan2(S{2} * y, (S{1} - x) * (S{1} + x) - y * y)};
}
template <RecipeValue S>
C<S> Atan(C<S> z) {
  return TimesMinusI(Atanh(TimesI(z)));
}

}  // namespace lazuli::hlo::recipes
