// Products of tiles of bf16 against sums in double.
#include "backend/cpu/runtime/bf16_tiles.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "ir/types/half.h"

namespace lazuli::cpu {
namespace {

float Small(uint32_t& seed) {
  seed = seed * 1664525 + 1013904223;
  return static_cast<float>(static_cast<int32_t>(seed >> 28) - 8) / 8;  // exact in bf16
}

// Rows are `extra` elements longer than they need be.
void ExpectProduct(int64_t rows, int64_t terms, int64_t columns, int64_t extra, bool adds) {
  SCOPED_TRACE(testing::Message() << rows << "x" << terms << "x" << columns << " adds " << adds);
  const auto size = [](int64_t n, int64_t row) { return static_cast<std::size_t>(n * row); };
  const int64_t a_row = terms + 2 * extra, b_row = columns + extra, c_row = columns + extra;
  uint32_t seed = 7;
  std::vector<uint16_t> a(size(rows, a_row)), b(size(terms, b_row));
  for (uint16_t& x : a) x = Eigen::numext::bit_cast<uint16_t>(ir::bfloat16(Small(seed)));
  for (uint16_t& x : b) x = Eigen::numext::bit_cast<uint16_t>(ir::bfloat16(Small(seed)));
  std::vector<float> c(size(rows, c_row), 3);
  {
    const ScopedBf16Tiles tiles;
    MultiplyBf16Tiles({.a = a.data(),
                       .a_row = a_row,
                       .a_rows = 16 * a_row,
                       .a_terms = 32,
                       .b = reinterpret_cast<const uint32_t*>(b.data()),
                       .b_row = b_row,
                       .c = c.data(),
                       .c_row = c_row,
                       .rows = rows,
                       .terms = terms,
                       .columns = columns,
                       .adds = adds});
  }
  const auto value = [](uint16_t bits) {
    return static_cast<double>(Eigen::numext::bit_cast<ir::bfloat16>(bits));
  };
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < c_row; ++j) {
      double sum = adds || j >= columns ? 3 : 0;
      for (int64_t p = 0; p < terms && j < columns; ++p) {
        sum += value(a[static_cast<std::size_t>(i * a_row + p)]) *
               value(b[static_cast<std::size_t>(p / 2 * 2 * b_row + 2 * j + p % 2)]);
      }
      ASSERT_EQ(c[static_cast<std::size_t>(i * c_row + j)], sum) << i << ", " << j;
    }
  }
}

TEST(Bf16TilesTest, GiveTheProductAndTouchNothingElse) {
  if (!HasBf16Tiles()) GTEST_SKIP() << "This processor has no tiles.";
  for (const bool adds : {false, true}) {
    ExpectProduct(16, 32, 16, 0, adds);
    ExpectProduct(48, 64, 80, 0, adds);
    ExpectProduct(64, 128, 32, 5, adds);
    ExpectProduct(32, 96, 48, 3, adds);
  }
}

}  // namespace
}  // namespace lazuli::cpu
