// The loops of Fourier transforms, over several transforms at once: one in each lane of a vector, so
// that no pass moves elements between lanes. Compiled for several processors.
//
// Work memory holds an element of all lanes as the vector of real parts and then that of imaginary
// parts. Arrays of complex numbers become that, and are made of it, at the ends of a transform.
#pragma once

#include <complex>
#include <cstdint>

#include "ir/support/namespaces.h"

namespace lazuli::cpu {

// One pass of Stockham's method: transforms of `radix` elements that lie m * s apart, `s` neighbours
// at a time. `turns` are the roots that results 1 to radix - 1 of each of the m places are multiplied
// by, `roots` those of the radix: cosines, then sines.
template <class T>
struct FourierPass {
  int64_t radix, m, s;
  const T* turns;
  const T* roots;
};

// Which of the numbers of a product are conjugates.
struct Conjugates {
  bool first = false, result = false;
};

// Complex arrays outside: `lanes` transforms, of which `count` exist. `swapped`: real and imaginary
// parts change places, which makes a transform the inverse one, if its results are swapped, too.
template <class T>
struct FourierLoops {
  using Complex = std::complex<T>;
  int64_t lanes;
  // Of x with y as scratch; the result is in the one that is returned.
  T* (*run)(const FourierPass<T>* passes, int64_t count, T* x, T* y);
  // Lanes that are neighbours; the n elements of each are `stride` apart.
  void (*load)(const Complex* from, int64_t stride, int64_t n, int64_t count, bool swapped, T* to);
  void (*store)(const T* from, int64_t n, int64_t count, bool swapped, T scale, Complex* to,
                int64_t stride);
  // Lanes that are rows, `stride` apart, of n neighbours each.
  void (*load_rows)(const Complex* from, int64_t stride, int64_t n, int64_t count, bool swapped,
                    T* to);
  void (*store_rows)(const T* from, int64_t n, int64_t count, bool swapped, T scale, Complex* to,
                     int64_t stride);
  // n elements, turned by as many turns, with lanes for elements: element e of lane l < count becomes
  // lane e % lanes of element l of a block of work memory; blocks of `block` numbers for so many e.
  void (*turn_over)(T* x, const T* turns, int64_t n, int64_t count, T* to, int64_t block);
  // Elements k and h - k of the transform of a real signal from those of the complex numbers that
  // its pairs are, or the other way round; from 1 to h / 2, `turns` being real parts, then imaginary
  // ones, of -i exp(-pi i k / h) / 2.
  void (*pairs)(const Complex* from, const T* turns, int64_t h, bool inverse, Complex* to);
  // The same in work memory, for all elements from 0 to h; the parts of the inverse one's results
  // change places.
  void (*pair_lanes)(T* x, const T* turns, int64_t h, bool inverse);
  // The products of n numbers and n others, times the scale.
  void (*multiply)(const Complex* x, const Complex* y, int64_t n, Conjugates conjugates, T scale,
                   Complex* to);
};
template <class T>
const FourierLoops<T>& FourierLoopsHere();

}  // namespace lazuli::cpu
