#include "backend/cpu/runtime/strided_copy.h"

#include <cstring>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace lazuli::cpu {
namespace {

std::vector<uint32_t> Numbers(std::size_t count) {
  std::vector<uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

template <class Move>
std::vector<uint32_t> Moved(std::size_t count, Move&& move) {
  const std::vector<uint32_t> source = Numbers(count);
  std::vector<uint32_t> target(count, 0xdead);
  move(reinterpret_cast<const std::byte*>(source.data()),
       reinterpret_cast<std::byte*>(target.data()));
  return target;
}

// Sizes around the 4 and 16 of the blocks that are transposed in registers and in the cache.
TEST(StridedCopyTest, TransposesMatricesOfAnySize) {
  for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 7}, {4, 4}, {5, 4}, {4, 5}, {16, 33}, {31, 20}, {144, 64}}) {
    SCOPED_TRACE(testing::Message() << rows << " x " << columns);
    const StridedCopy copy(4, {rows, columns}, {columns, 1}, {1, rows});
    const auto moved = Moved(static_cast<std::size_t>(rows * columns),
                             [&](const std::byte* s, std::byte* t) { copy.Run(s, t); });
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c)
        ASSERT_EQ(moved[static_cast<std::size_t>(c * rows + r)], r * columns + c);
    }
  }
}

TEST(StridedCopyTest, PartsTogetherAreTheWhole) {
  // Features from behind the positions to before them, for each of six images.
  const StridedCopy copy(4, {6, 8, 35}, {280, 1, 8}, {280, 35, 1});
  ASSERT_TRUE(copy.CanSplit(3));
  EXPECT_FALSE(copy.CanSplit(4));
  const auto whole = Moved(1680, [&](const std::byte* s, std::byte* t) { copy.Run(s, t); });
  const auto parts = Moved(1680, [&](const std::byte* s, std::byte* t) {
    for (const int64_t part : {2, 0, 1}) copy.RunPart(s, t, part, 3);
  });
  EXPECT_EQ(whole, parts);
}

TEST(StridedCopyTest, WhatMovesBetweenPiecesDoesNotSplit) {
  EXPECT_FALSE(StridedCopy(4, {6, 8}, {8, 1}, {1, 6}).CanSplit(2));   // a transpose
  EXPECT_FALSE(StridedCopy(4, {6, 8}, {-8, 1}, {8, 1}).CanSplit(2));  // a reversal
  EXPECT_FALSE(StridedCopy(4, {6, 8}, {16, 1}, {8, 1}).CanSplit(2));  // a slice
}

}  // namespace
}  // namespace lazuli::cpu
