// Discrete Fourier transforms of any length, in f64.
//
// Lengths with small prime factors go by Stockham's method, whose passes need no reordering; the
// others become a convolution of a length that is a power of two (Bluestein, 1970).
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

namespace lazuli::cpu {

class Fourier {
 public:
  using Complex = std::complex<double>;

  // The inverse is not divided by n.
  Fourier(int64_t n, bool inverse);
  int64_t size() const { return n_; }
  // Elements of scratch memory that Run wants.
  int64_t scratch() const { return chirp_.empty() ? n_ : 2 * inner_->size(); }
  // In place.
  void Run(Complex* x, Complex* scratch) const;

 private:
  void RunChirped(Complex* x, Complex* scratch) const;

  int64_t n_;
  std::vector<int> factors_;
  std::vector<Complex> roots_;  // of unity
  // Bluestein's: x[k] chirp[k] is convolved with the inverse chirp, whose spectrum is kept.
  std::vector<Complex> chirp_, spectrum_;
  std::unique_ptr<Fourier> inner_, inner_inverse_;
};

}  // namespace lazuli::cpu
