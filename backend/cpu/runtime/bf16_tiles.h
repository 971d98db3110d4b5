// Products of matrices of bf16 by the processor's tiles (AMX), where it has them: sums in f32. Sums
// and products that would be subnormal are 0.
#pragma once

#include <cstdint>

#include "ir/support/namespaces.h"

namespace lazuli::cpu {

// Whether the processor has such tiles, and the system lets this process use them.
bool HasBf16Tiles();

// While it lives, the thread has its tiles in the form that MultiplyBf16Tiles() wants.
class ScopedBf16Tiles {
 public:
  ScopedBf16Tiles();
  ~ScopedBf16Tiles();
  ScopedBf16Tiles(const ScopedBf16Tiles&) = delete;
  ScopedBf16Tiles& operator=(const ScopedBf16Tiles&) = delete;
};

// c[i, j] = sum over p of a[i, p] b[p, j], or that added to what c has. An element of b holds two
// terms, of rows 2p (the lower half) and 2p + 1. Strides in elements; rows and columns are
// multiples of kBf16TileRows, terms of kBf16TileTerms.
inline constexpr int64_t kBf16TileRows = 16, kBf16TileTerms = 32;
struct Bf16TileProduct {
  const uint16_t* a;
  int64_t a_row;
  int64_t a_rows, a_terms;  // from tile to tile of rows, and of terms
  const uint32_t* b;
  int64_t b_row;
  float* c;
  int64_t c_row;
  int64_t rows, terms, columns;
  bool adds;
};
void MultiplyBf16Tiles(const Bf16TileProduct& product);

}  // namespace lazuli::cpu
