// Discrete Fourier transforms of any length, planned once, in the type of the elements.
//
// Lengths with small prime factors are computed by Stockham's passes over several lines at once, one
// per lane of a vector (fourier_kernels.h): the lines of a batch, or the columns and then the rows of
// a long line that is taken as a matrix (Bailey, 1990). Other lengths become a convolution of such a
// length (Bluestein, 1970). How a line is computed depends on its length alone, so that its values
// do not depend on the batch.
#pragma once

#include <complex>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "backend/cpu/runtime/fourier_kernels.h"

namespace lazuli::cpu {

// Memory for vectors, not initialized.
template <class T>
class FourierWork {
 public:
  explicit FourierWork(int64_t count);
  T* data() const { return memory_.get(); }

 private:
  struct Free {
    void operator()(T* memory) const { std::free(memory); }
  };
  std::unique_ptr<T[], Free> memory_;
};

// Transforms of n elements per lane; the prime factors of n are small.
template <class T>
class LaneTransform {
 public:
  explicit LaneTransform(int64_t n);
  // The radices of its passes; none for a length with a large prime factor.
  static std::vector<int64_t> Radices(int64_t n);
  int64_t size() const { return n_; }
  int64_t numbers() const { return 2 * n_ * FourierLoopsHere<T>().lanes; }  // of work memory
  T* Run(T* x, T* y) const {
    return FourierLoopsHere<T>().run(passes_.data(), static_cast<int64_t>(passes_.size()), x, y);
  }

 private:
  int64_t n_;
  std::vector<FourierPass<T>> passes_;
  std::vector<T> tables_;
};

template <class T>
class Fourier {
 public:
  using Complex = std::complex<T>;
  // The sums are multiplied by the scale.
  struct Direction {
    bool inverse = false;
    T scale = 1;
  };

  // What is planned for: lines whose elements are neighbours, or columns of a matrix.
  enum class Along : uint8_t { kRows, kColumns };
  Fourier(int64_t n, Along along);
  int64_t size() const { return n_; }
  // Lines of n neighbours; x and y may be one array.
  void Rows(const Complex* x, int64_t x_stride, Complex* y, int64_t y_stride, int64_t rows,
            Direction direction) const;
  // PairedRows() transforms real lines of 2 n elements to the first n + 1 elements of their spectra,
  // or back; the turns are those of FourierLoops::pairs. Only where is_whole().
  bool is_whole() const { return whole_ != nullptr; }
  void PairedRows(const Complex* x, Complex* y, int64_t rows, Direction direction,
                  const T* turns) const;
  // `columns` lines, whose elements are `columns` apart, in each of `count` matrices that lie one
  // after the other; x and y may be one array.
  void Columns(const Complex* x, Complex* y, int64_t columns, int64_t count,
               Direction direction) const;

 private:
  void Split();
  void MakeChirp();
  void WholeRows(const Complex* x, int64_t x_stride, Complex* y, int64_t y_stride, int64_t rows,
                 Direction direction, const T* pair_turns = nullptr) const;
  int64_t RowNumbers() const;  // of work memory for a row
  void Row(const Complex* x, Complex* y, Direction direction, T* work) const;
  void SplitRow(const Complex* x, Complex* y, Direction direction, T* work) const;
  void ChirpedRow(const Complex* x, Complex* y, Direction direction, T* work) const;

  int64_t n_;
  // Transforms of the line itself, or of the columns and the rows of a matrix, whose elements are
  // multiplied by turns in between.
  std::unique_ptr<LaneTransform<T>> whole_, columns_, rows_;
  std::vector<T> turns_;
  // Bluestein's: x[k] chirp[k] is convolved with the inverse chirp, whose spectrum is kept.
  std::unique_ptr<Fourier> inner_;
  std::vector<Complex> chirp_, spectrum_;
};

// Transforms of real lines of n elements to the first n/2 + 1 elements of their spectra, and back.
template <class T>
class RealFourier {
 public:
  using Complex = std::complex<T>;
  explicit RealFourier(int64_t n);
  void Forward(const T* x, Complex* y, int64_t rows) const;
  void Inverse(const Complex* x, T* y, int64_t rows, T scale) const;

 private:
  // f(row, count) of groups of rows that are computed in one go.
  template <class F>
  void InGroups(int64_t rows, F&& f) const;
  void ForwardSome(const T* x, Complex* y, int64_t rows) const;
  void InverseSome(const Complex* x, T* y, int64_t rows, T scale) const;

  int64_t n_;
  bool paired_;         // n is even: neighbours are taken as the parts of complex numbers
  Fourier<T> complex_;  // of n / 2 elements if paired, else of n
  std::vector<T> turns_;
};

}  // namespace lazuli::cpu
