// The loops of products with few rows, by layout of the large factor. Compiled for several processors.
#pragma once

#include <cstdint>

#include "ir/support/namespaces.h"
#include "ir/types/half.h"

namespace lazuli::cpu {

// c[i, j] = sum over p of a[i, p] b[p, j] for all rows i, the columns j from `begin` to `end` and the
// terms p from 0 to k. Strides in elements. The large factor may be of a narrower type B, whose elements
// are widened as they are read.
template <class T, class B = T>
struct FewRows {
  const T* a;
  int64_t a_row, a_column;
  const B* b;
  int64_t b_row, b_column;
  T* c;
  int64_t c_row, c_column;
  int64_t rows, k, begin, end;
};

// Term p goes to lane p % n, where n is the number of elements of a vector; the lanes are added up,
// neighbours first, and the terms behind the last whole vector one by one. Both loops do, so that values
// do not depend on how b lies in memory.

// For terms that lie side by side: a_column and b_row are 1.
template <class T, class B>
void MultiplyDots(const FewRows<T, B>& product);
// For columns that lie side by side: b_column is 1. `scratch`: so many elements for products of as many
// columns at most.
template <class T>
int64_t AddedRowsScratch(int64_t rows, int64_t columns);
template <class T, class B>
void AddScaledRows(const FewRows<T, B>& product, T* scratch);

}  // namespace lazuli::cpu
