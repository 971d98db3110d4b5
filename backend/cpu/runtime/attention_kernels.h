// The loops of attention over tiles that lie in a cache: products, rows of exponentials, gradients.
// Compiled for several processors.
#pragma once

#include <cstdint>

#include "ir/support/namespaces.h"
#include "ir/types/dtype.h"

namespace lazuli::cpu {

// c[i, j] = sum over p of a[i, p] b[p, j], or that added to what c has. Strides in elements; the
// columns of b and c lie side by side and are a multiple of TileLoops::lanes.
template <class T>
struct TileProduct {
  const T* a;
  int64_t a_row, a_column;
  const T* b;
  int64_t b_row;
  T* c;
  int64_t c_row;
  int64_t rows, k, columns;
  bool adds;
};

// Counts of elements are multiples of `lanes`, the elements of a vector.
template <class T>
struct TileLoops {
  int64_t lanes;
  void (*multiply)(const TileProduct<T>& product);
  // to[j * to_row + i] = from[i * from_row + j] for i < rows, j < columns.
  void (*transpose)(const T* from, int64_t from_row, int64_t rows, int64_t columns, T* to,
                    int64_t to_row);
  // The largest element, NaN left out, or -infinity.
  T (*largest)(const T* x, int64_t count);
  // x = exp(x - shift), which is at most 1 where it is not NaN; their sum.
  T (*exponentials)(T* x, int64_t count, T shift);
  // x *= factor
  void (*scale)(T* x, int64_t count, T factor);
  // x += y, whose elements are `stride` apart; any count.
  void (*add)(T* x, const T* y, int64_t stride, int64_t count);
  // `number` where the mask, whose elements are `stride` apart, is not `shown`; any count.
  void (*hide)(T* x, const uint8_t* mask, int64_t stride, int64_t count, bool shown, T number);
  // x = factor exp(x - shift); the sum of x * y.
  T (*weights)(T* x, const T* y, int64_t count, T shift, T factor);
  // slope = weight * (slope - mean)
  void (*slopes)(const T* weights, T* slopes, int64_t count, T mean);
  // Whether all elements are finite.
  bool (*finite)(const T* x, int64_t count);
};
// T is float or double.
template <class T>
const TileLoops<T>& TileLoopsHere();

// Rows of 16-bit floats, of any count.
struct HalfLoops {
  void (*widen)(const uint16_t* x, int64_t count, float* to);
  void (*narrow)(const float* x, int64_t count, uint16_t* to);  // to nearest even
  bool (*finite)(const uint16_t* x, int64_t count);             // whether all elements are
  // to[j] = x[j] in the lower half and y[j] in the upper one.
  void (*pair)(const uint16_t* x, const uint16_t* y, int64_t count, uint32_t* to);
};
// Of bf16 or f16.
const HalfLoops& HalfLoopsHere(DType dtype);

}  // namespace lazuli::cpu
