// Rows of 16-bit floats become f32 and back as Eigen converts each element.
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "backend/cpu/runtime/attention_kernels.h"
#include "ir/types/half.h"

namespace lazuli::cpu {
namespace {

std::vector<uint16_t> AllHalves() {
  std::vector<uint16_t> all(1 << 16);
  std::iota(all.begin(), all.end(), uint16_t{0});
  return all;
}

template <class H>
void ExpectConversionsOf(DType dtype) {
  const HalfLoops& loops = HalfLoopsHere(dtype);
  const std::vector<uint16_t> halves = AllHalves();
  std::vector<float> wide(halves.size());
  loops.widen(halves.data(), static_cast<int64_t>(halves.size()), wide.data());
  std::vector<float> between;  // each, what is halfway to the next one, and their neighbours
  for (std::size_t i = 0; i < halves.size(); ++i) {
    const float x = static_cast<float>(Eigen::numext::bit_cast<H>(halves[i]));
    ASSERT_TRUE(wide[i] == x || (std::isnan(wide[i]) && std::isnan(x))) << halves[i];
    const float next = static_cast<float>(Eigen::numext::bit_cast<H>(
        static_cast<uint16_t>(halves[i] + (i + 1 < halves.size() ? 1 : 0))));
    const float half = x / 2 + next / 2;
    for (const float y : {x, std::nextafter(half, x), half, std::nextafter(half, next)})
      between.push_back(y);
  }
  std::vector<uint16_t> narrow(between.size() - 1);  // an odd count
  loops.narrow(between.data(), static_cast<int64_t>(narrow.size()), narrow.data());
  for (std::size_t i = 0; i < narrow.size(); ++i) {
    const float made = static_cast<float>(Eigen::numext::bit_cast<H>(narrow[i]));
    if (std::isnan(between[i])) {
      ASSERT_TRUE(std::isnan(made)) << i;
    } else {
      ASSERT_EQ(narrow[i], Eigen::numext::bit_cast<uint16_t>(static_cast<H>(between[i])))
          << between[i];
    }
  }
}

TEST(HalfLoopsTest, ConvertAsEigenDoes) {
  ExpectConversionsOf<ir::bfloat16>(DType::kBF16);
  ExpectConversionsOf<ir::half>(DType::kF16);
}

TEST(HalfLoopsTest, SeeNumbersThatAreNotFiniteWhereverTheyAre) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    const uint16_t infinity = dtype == DType::kBF16 ? 0x7f80 : 0x7c00;
    const HalfLoops& loops = HalfLoopsHere(dtype);
    std::vector<uint16_t> x(77, static_cast<uint16_t>(infinity - 1));  // the largest number
    EXPECT_TRUE(loops.finite(x.data(), 77));
    for (const uint16_t bad : {infinity, static_cast<uint16_t>(infinity | 0x8001)}) {
      for (std::size_t i = 0; i < x.size(); ++i) {
        std::vector<uint16_t> y = x;
        y[i] = bad;
        EXPECT_FALSE(loops.finite(y.data(), 77)) << i;
      }
    }
  }
}

TEST(HalfLoopsTest, PairRows) {
  std::vector<uint16_t> x(35), y(35);
  std::iota(x.begin(), x.end(), uint16_t{1});
  std::iota(y.begin(), y.end(), uint16_t{0xff00});
  std::vector<uint32_t> pairs(36, 9);
  HalfLoopsHere(DType::kBF16).pair(x.data(), y.data(), 35, pairs.data());
  for (std::size_t i = 0; i < 35; ++i)
    EXPECT_EQ(pairs[i], x[i] | static_cast<uint32_t>(y[i]) << 16);
  EXPECT_EQ(pairs[35], 9u);
}

}  // namespace
}  // namespace lazuli::cpu
