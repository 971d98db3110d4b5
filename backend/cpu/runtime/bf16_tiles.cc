#include "backend/cpu/runtime/bf16_tiles.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace lazuli::cpu {

#if defined(__x86_64__) && defined(__linux__)
namespace {

#define LAZULI_TILES gnu::target("amx-tile,amx-bf16")

bool AskForTiles() {
  constexpr unsigned kTiles = 1u << 24, kBf16 = 1u << 22;
  constexpr int kRequest = 0x1023, kTileData = 18;  // of arch_prctl
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kTiles) == 0 || (d & kBf16) == 0)
    return false;
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

// Tiles 0 to 3 hold sums, 4 and 5 rows of a, 6 and 7 columns of b.
template <int kRows, int kColumns>
[[LAZULI_TILES]] void SumTiles(const Bf16TileProduct& t, int64_t i, int64_t j) {
  // GCC does not know that loads of tiles read memory.
  asm volatile("" ::: "memory");
  const auto bytes = [](int64_t elements) { return static_cast<std::size_t>(4 * elements); };
  float* const c = t.c + i * t.c_row + j;
  float* const below = c + 16 * t.c_row;
  const std::size_t c_step = bytes(t.c_row), a_step = bytes(t.a_row) / 2, b_step = bytes(t.b_row);
  if (t.adds) {
    _tile_loadd(0, c, c_step);
    if constexpr (kColumns == 2) _tile_loadd(1, c + 16, c_step);
    if constexpr (kRows == 2) _tile_loadd(2, below, c_step);
    if constexpr (kRows == 2 && kColumns == 2) _tile_loadd(3, below + 16, c_step);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const uint16_t* a = t.a + i / kBf16TileRows * t.a_rows;
  const uint32_t* b = t.b + j;
  for (int64_t p = 0; p < t.terms; p += kBf16TileTerms, a += t.a_terms, b += 16 * t.b_row) {
    _tile_loadd(4, a, a_step);
    _tile_loadd(6, b, b_step);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kColumns == 2) {
      _tile_loadd(7, b + 16, b_step);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (kRows == 2) {
      _tile_loadd(5, a + t.a_rows, a_step);
      _tile_dpbf16ps(2, 5, 6);
      if constexpr (kColumns == 2) _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, c, c_step);
  if constexpr (kColumns == 2) _tile_stored(1, c + 16, c_step);
  if constexpr (kRows == 2) _tile_stored(2, below, c_step);
  if constexpr (kRows == 2 && kColumns == 2) _tile_stored(3, below + 16, c_step);
  asm volatile("" ::: "memory");
}

template <int kRows>
void SumRows(const Bf16TileProduct& t, int64_t i) {
  int64_t j = 0;
  for (; j + 32 <= t.columns; j += 32) SumTiles<kRows, 2>(t, i, j);
  if (j < t.columns) SumTiles<kRows, 1>(t, i, j);
}

[[LAZULI_TILES]] void LoadForm() {
  struct alignas(64) Form {
    uint8_t palette = 1, start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  };
  static constexpr Form kForm;
  _tile_loadconfig(&kForm);
}
[[LAZULI_TILES]] void ReleaseTiles() { _tile_release(); }

#undef LAZULI_TILES

}  // namespace

bool HasBf16Tiles() {
  static const bool has = AskForTiles();
  return has;
}

ScopedBf16Tiles::ScopedBf16Tiles() { LoadForm(); }
ScopedBf16Tiles::~ScopedBf16Tiles() { ReleaseTiles(); }

void MultiplyBf16Tiles(const Bf16TileProduct& product) {
  int64_t i = 0;
  for (; i + 32 <= product.rows; i += 32) SumRows<2>(product, i);
  if (i < product.rows) SumRows<1>(product, i);
}

#else

bool HasBf16Tiles() { return false; }
ScopedBf16Tiles::ScopedBf16Tiles() = default;
ScopedBf16Tiles::~ScopedBf16Tiles() = default;
void MultiplyBf16Tiles(const Bf16TileProduct&) {}

#endif

}  // namespace lazuli::cpu
