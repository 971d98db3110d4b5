// The zeta function of Hurwitz: a template that gamma.cc uses, too. zeta.cc defines the public function.
#pragma once

#include <array>
#include <cstddef>

#include "lazy/ops/core/functions.h"
#include "lazy/ops/elementwise/elementwise.h"

namespace lazuli::lazy {

inline Tensor Power(const Tensor& x, double exponent) { return PowNumber(x, exponent); }
inline Tensor Power(const Tensor& x, const Tensor& exponent) { return Pow(x, exponent); }

// Of s > 1, a number or a tensor, and x > 0 in f64: the sum of (x + k)^-s, by the formula of Euler
// and Maclaurin.
template <class S>
Tensor HurwitzZeta(const S& s, const Tensor& x) {
  constexpr int kTerms = 12;
  constexpr std::array kBernoulli = {1.0 / 12,         -1.0 / 720,     1.0 / 30240,
                                     -1.0 / 1209600,   1.0 / 47900160, -691.0 / 1307674368000,
                                     1.0 / 74724249600};  // B(2k) / (2k)!
  Tensor sum;
  for (int k = 0; k < kTerms; ++k) {
    const Tensor term = Power(x + static_cast<double>(k), -s);
    sum = sum.defined() ? sum + term : term;
  }
  const Tensor w = x + static_cast<double>(kTerms);
  sum = sum + Power(w, 1.0 - s) / (s - 1.0) + Power(w, -s) * 0.5;
  S rising = s;
  Tensor step = Power(w, -s - 1.0);
  for (std::size_t k = 0; k < kBernoulli.size(); ++k) {
    sum = sum + step * (rising * kBernoulli[k]);
    const S from = s + (2 * static_cast<double>(k) + 1);
    rising = rising * (from * (from + 1.0));
    step = step / (w * w);
  }
  return sum;
}

}  // namespace lazuli::lazy
