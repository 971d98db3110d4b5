#include "backend/cpu/runtime/fourier.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace lazuli::cpu {
namespace {

using Complex = Fourier::Complex;

constexpr double kTurn = 6.283185307179586477;

// std::complex's product looks after infinities; these are finite or lost.
inline Complex Times(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

Complex Root(int64_t i, int64_t n, bool inverse) {
  const double angle = kTurn * static_cast<double>(i) / static_cast<double>(n);
  return {std::cos(angle), (inverse ? 1 : -1) * std::sin(angle)};
}

// Prime factors, fours first; empty if one of them is large.
std::vector<int> SmallFactors(int64_t n) {
  std::vector<int> factors;
  for (int factor : {4, 2, 3, 5, 7, 11, 13}) {
    for (; n % factor == 0; n /= factor) factors.push_back(factor);
  }
  if (n != 1) factors.clear();
  return factors;
}

// One pass: transforms of `radix` elements that lie m * s apart, `s` neighbours at a time, each
// result turned by the root of its place.
struct FftPass {
  int64_t n, m, s;
  const Complex* roots;  // of the whole length
  Complex Turn(int64_t p, int64_t k) const { return roots[p * k * s]; }
};

void PassOf2(const FftPass& pass, const Complex* x, Complex* y) {
  const int64_t m = pass.m, s = pass.s;
  for (int64_t p = 0; p < m; ++p) {
    const Complex w = pass.Turn(p, 1);
    for (int64_t q = 0; q < s; ++q) {
      const Complex a = x[q + s * p], b = x[q + s * (p + m)];
      y[q + s * 2 * p] = a + b;
      y[q + s * (2 * p + 1)] = Times(a - b, w);
    }
  }
}

void PassOf4(const FftPass& pass, const Complex* x, Complex* y) {
  const int64_t m = pass.m, s = pass.s;
  const Complex quarter = pass.roots[pass.n / 4];  // -i, or i for the inverse
  for (int64_t p = 0; p < m; ++p) {
    const Complex w1 = pass.Turn(p, 1), w2 = pass.Turn(p, 2), w3 = pass.Turn(p, 3);
    for (int64_t q = 0; q < s; ++q) {
      const Complex a = x[q + s * p], b = x[q + s * (p + m)], c = x[q + s * (p + 2 * m)],
                    d = x[q + s * (p + 3 * m)];
      const Complex sum = a + c, difference = a - c, other = b + d, turned = Times(b - d, quarter);
      y[q + s * 4 * p] = sum + other;
      y[q + s * (4 * p + 1)] = Times(difference + turned, w1);
      y[q + s * (4 * p + 2)] = Times(sum - other, w2);
      y[q + s * (4 * p + 3)] = Times(difference - turned, w3);
    }
  }
}

void PassOf(int radix, const FftPass& pass, const Complex* x, Complex* y) {
  const int64_t m = pass.m, s = pass.s;
  const int64_t step = pass.n / radix;
  for (int64_t p = 0; p < m; ++p) {
    for (int64_t k = 0; k < radix; ++k) {
      const Complex w = pass.Turn(p, k);
      for (int64_t q = 0; q < s; ++q) {
        Complex sum = x[q + s * p];
        for (int64_t j = 1; j < radix; ++j)
          sum += Times(x[q + s * (p + m * j)], pass.roots[j * k % radix * step]);
        y[q + s * (radix * p + k)] = Times(sum, w);
      }
    }
  }
}

}  // namespace

Fourier::Fourier(int64_t n, bool inverse) : n_(n), factors_(SmallFactors(n)) {
  if (n <= 1) return;
  if (!factors_.empty()) {
    for (int64_t i = 0; i < n; ++i) roots_.push_back(Root(i, n, inverse));
    return;
  }
  const auto length = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * n - 1)));
  inner_ = std::make_unique<Fourier>(length, false);
  inner_inverse_ = std::make_unique<Fourier>(length, true);
  spectrum_.assign(static_cast<std::size_t>(length), 0);
  for (int64_t k = 0; k < n; ++k) {
    chirp_.push_back(Root(k * k % (2 * n), 2 * n, inverse));
    const Complex back = std::conj(chirp_.back()) / static_cast<double>(length);
    spectrum_[static_cast<std::size_t>(k)] = back;
    if (k > 0) spectrum_[static_cast<std::size_t>(length - k)] = back;
  }
  std::vector<Complex> scratch(static_cast<std::size_t>(length));
  inner_->Run(spectrum_.data(), scratch.data());
}

void Fourier::Run(Complex* x, Complex* scratch) const {
  if (n_ <= 1) return;
  if (!chirp_.empty()) return RunChirped(x, scratch);
  Complex *from = x, *to = scratch;
  FftPass pass{n_, n_, 1, roots_.data()};
  for (int radix : factors_) {
    pass.m /= radix;
    if (radix == 2) {
      PassOf2(pass, from, to);
    } else if (radix == 4) {
      PassOf4(pass, from, to);
    } else {
      PassOf(radix, pass, from, to);
    }
    pass.s *= radix;
    std::swap(from, to);
  }
  if (from != x) std::copy_n(from, n_, x);
}

void Fourier::RunChirped(Complex* x, Complex* scratch) const {
  const int64_t length = inner_->size();
  Complex *const padded = scratch, *const rest = scratch + length;
  for (int64_t k = 0; k < n_; ++k) padded[k] = Times(x[k], chirp_[static_cast<std::size_t>(k)]);
  std::fill(padded + n_, padded + length, Complex(0));
  inner_->Run(padded, rest);
  for (int64_t k = 0; k < length; ++k)
    padded[k] = Times(padded[k], spectrum_[static_cast<std::size_t>(k)]);
  inner_inverse_->Run(padded, rest);
  for (int64_t k = 0; k < n_; ++k) x[k] = Times(padded[k], chirp_[static_cast<std::size_t>(k)]);
}

}  // namespace lazuli::cpu
