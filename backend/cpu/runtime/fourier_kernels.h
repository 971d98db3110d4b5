// The loops of Fourier transforms. They compute several transforms at once, one per lane of a
// vector, so that no pass moves elements between lanes. Compiled for several processors.
//
// Work memory holds an element of all lanes as the vector of real parts and then that of imaginary
// parts. Arrays of complex numbers are converted to that at the start of a transform, and back at
// its end.
#pragma once

#include <complex>
#include <cstdint>

#include "ir/support/namespaces.h"

namespace lazuli::cpu {

// The largest radix of a pass. Radices are 2, 4, 8, or odd.
inline constexpr int kMostFourierRadix = 31;

// One pass of Stockham's method: transforms of `radix` elements that lie m * s apart, for `s`
// neighbours at a time. `turns` are roots of unity, by which results 1 to radix - 1 of each of the m
// places are multiplied. `roots` are those of the radix: cosines, then sines.
template <class T>
struct FourierPass {
  int64_t radix, m, s;
  const T* turns;
  const T* roots;
};

// Which numbers of a product are conjugated: the first factor, the result.
struct Conjugates {
  bool first = false, result = false;
};

// Loops over `lanes` transforms, of which `count` exist. `swapped`: real and imaginary parts change
// places; a transform of swapped numbers with swapped results is the inverse one.
template <class T>
struct FourierLoops {
  using Complex = std::complex<T>;
  int64_t lanes;
  // Transforms x, with y as scratch memory; the result is in the one that is returned.
  T* (*run)(const FourierPass<T>* passes, int64_t count, T* x, T* y);
  // From and to arrays where lanes are neighbours; the n elements of a lane are `stride` apart.
  void (*load)(const Complex* from, int64_t stride, int64_t n, int64_t count, bool swapped, T* to);
  void (*store)(const T* from, int64_t n, int64_t count, bool swapped, T scale, Complex* to,
                int64_t stride);
  // From and to arrays where lanes are rows, `stride` apart; the n elements of a lane are neighbours.
  void (*load_rows)(const Complex* from, int64_t stride, int64_t n, int64_t count, bool swapped,
                    T* to);
  void (*store_rows)(const T* from, int64_t n, int64_t count, bool swapped, T scale, Complex* to,
                     int64_t stride);
  // Multiplies n elements by n turns and transposes them: element e of lane l < count becomes lane
  // e % lanes of element l of block e / lanes. Blocks are work memory of `block` numbers.
  void (*turn_over)(T* x, const T* turns, int64_t n, int64_t count, T* to, int64_t block);
  // The transform of a real signal of 2 h elements from the transform of the h complex numbers that
  // have neighbours of the signal as their parts, or the other way round (`inverse`). Makes elements
  // k and h - k for k from 1 to h / 2. `turns` are the real parts, then the imaginary parts, of
  // -i exp(-pi i k / h) / 2.
  void (*pairs)(const Complex* from, const T* turns, int64_t h, bool inverse, Complex* to);
  // The same in work memory, for all elements from 0 to h; real and imaginary parts of the inverse
  // one's results change places.
  void (*pair_lanes)(T* x, const T* turns, int64_t h, bool inverse);
  // The products of n numbers and n others, times the scale.
  void (*multiply)(const Complex* x, const Complex* y, int64_t n, Conjugates conjugates, T scale,
                   Complex* to);
};
template <class T>
const FourierLoops<T>& FourierLoopsHere();

}  // namespace lazuli::cpu
