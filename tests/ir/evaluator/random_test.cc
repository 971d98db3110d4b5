// Random bits are those of the published ciphers, and of jaxlib 0.10 where it lays them out.

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "ir/evaluator/random_bits.h"
#include "ir/support/runtime.h"
#include "tests/ir/evaluator/run.h"

namespace lazuli {
namespace {

using ir::Literal;
using testing::ElementsAre;

constexpr uint64_t kKey = 0x123456789abcdef0, kCounter = 0x0fedcba987654321,
                   kHigh = 0x1111222233334444;

// Known answers of Random123.
TEST(RandomTest, CiphersMatchTheirKnownAnswers) {
  EXPECT_THAT(hlo::Philox4x32({0, 0, 0, 0}, {0, 0}),
              ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(
      hlo::Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
  EXPECT_THAT(hlo::ThreeFry2x32({0, 0}, {0, 0}), ElementsAre(0x6b200159, 0x99ba4efe));
  EXPECT_THAT(hlo::ThreeFry2x32({0x243f6a88, 0x85a308d3}, {0x13198a2e, 0x03707344}),
              ElementsAre(0xc4923a9c, 0x483df7a0));
}

Literal Bits(const std::string& algorithm, const std::string& shape,
             const std::vector<uint64_t>& state) {
  const Literal words = Literal::FromValues<uint64_t>({static_cast<int64_t>(state.size())}, state);
  return Eval(
      ir::Str("ENTRY e { s = u64[", state.size(), "] parameter(0) ROOT r = (u64[", state.size(),
              "], ", shape, ") rng-bit-generator(s), algorithm=", algorithm, " }"),
      {words});
}
std::span<const uint32_t> Words(const Literal& result) {
  return result.tuple()[1].data<uint32_t>();
}

TEST(RandomTest, PhiloxHasXlasBits) {
  const Literal two = Bits("rng_philox", "u32[9]", {kKey, kCounter});
  EXPECT_THAT(two.tuple()[0].data<uint64_t>(), ElementsAre(kKey, kCounter + 3));
  EXPECT_THAT(Words(two), ElementsAre(0xff2403f1, 0xe3e6ba8, 0x405ce119, 0xaed8669e, 0x9e057f2a,
                                      0x4d5d28bd, 0xe1d88e71, 0xf750aa57, 0xb1d9eb97));
  const Literal three = Bits("rng_default", "u32[4]", {kKey, kCounter, kHigh});
  EXPECT_THAT(three.tuple()[0].data<uint64_t>(), ElementsAre(kKey, kCounter + 1, kHigh));
  EXPECT_THAT(Words(three), ElementsAre(0x19ba014, 0x1b9c055c, 0xdfc7c6f4, 0x3e6db820));
}

TEST(RandomTest, PhiloxCarriesIntoTheHighCounter) {
  const Literal result = Bits("rng_philox", "u32[12]", {kKey, ~uint64_t{0} - 1, 5});
  EXPECT_THAT(result.tuple()[0].data<uint64_t>(), ElementsAre(kKey, 1, 6));
  EXPECT_EQ(Words(result)[8], 0x39721d95);
}

TEST(RandomTest, PhiloxOfOtherWidths) {
  EXPECT_THAT(Bits("rng_philox", "u64[3]", {kKey, kCounter}).tuple()[1].data<uint64_t>(),
              ElementsAre(0xe3e6ba8ff2403f1, 0xaed8669e405ce119, 0x4d5d28bd9e057f2a));
  EXPECT_THAT(Bits("rng_philox", "u16[3]", {kKey, kCounter}).tuple()[1].data<uint16_t>(),
              ElementsAre(0x3f1, 0x6ba8, 0xe119));
  EXPECT_THAT(Bits("rng_philox", "u8[3]", {kKey, kCounter}).tuple()[1].data<uint8_t>(),
              ElementsAre(0xf1, 0xa8, 0x19));
}

TEST(RandomTest, ThreeFryHasXlasBitsAndLayout) {
  const Literal odd = Bits("rng_three_fry", "u32[3,3]", {kKey, kCounter});
  EXPECT_THAT(odd.tuple()[0].data<uint64_t>(), ElementsAre(kKey, kCounter + 6));
  EXPECT_THAT(Words(odd), ElementsAre(0x1324f11a, 0xf5ee7bf6, 0xac0a940e, 0x2ae1effe, 0x5af1ca39,
                                      0x2594e3df, 0x9145f7a4, 0x756254ae, 0xc7ae7aa));
  const Literal even = Bits("rng_three_fry", "u32[3,2]", {kKey, kCounter});
  EXPECT_THAT(even.tuple()[0].data<uint64_t>(), ElementsAre(kKey, kCounter + 3));
  EXPECT_THAT(Words(even),
              ElementsAre(0x1324f11a, 0x2ae1effe, 0xf5ee7bf6, 0x5af1ca39, 0xac0a940e, 0x2594e3df));
  EXPECT_THAT(Bits("rng_three_fry", "u64[2]", {kKey, kCounter}).tuple()[1].data<uint64_t>(),
              ElementsAre(0x2ae1effe1324f11a, 0x5af1ca39f5ee7bf6));
}

TEST(RandomTest, RngDrawsFromItsDistribution) {
  const Literal uniform = Eval(
      "ENTRY e { a = f32[] constant(2) b = f32[] constant(6) ROOT r = f32[4000] rng(a, b), "
      "distribution=rng_uniform }");
  const Literal normal = Eval(
      "ENTRY e { a = f32[] constant(2) b = f32[] constant(6) ROOT r = f32[4000] rng(a, b), "
      "distribution=rng_normal }");
  double sum = 0, normal_sum = 0, squares = 0;
  for (std::size_t i = 0; i < 4000; ++i) {
    const float u = uniform.data<float>()[i], n = normal.data<float>()[i];
    EXPECT_TRUE(u >= 2 && u < 6);
    sum += u;
    normal_sum += n;
    squares += (n - 2) * (n - 2);
  }
  EXPECT_NEAR(sum / 4000, 4, 0.1);
  EXPECT_NEAR(normal_sum / 4000, 2, 0.4);
  EXPECT_NEAR(std::sqrt(squares / 4000), 6, 0.3);
}

// The numbers that follow one another are the runtime's: a new one starts from nothing.
TEST(RandomTest, WhatRngDrewBeforeIsTheRuntimes) {
  const auto draw = [] {
    return Eval(
               "ENTRY e { a = f32[] constant(0) b = f32[] constant(1) ROOT r = f32[4] rng(a, b), "
               "distribution=rng_uniform }")
        .ToString();
  };
  std::string first, second;
  for (std::string* numbers : {&first, &second}) {
    const ir::Runtime::Scope fresh;
    *numbers = draw();
    EXPECT_NE(draw(), *numbers);
  }
  EXPECT_EQ(first, second);
}

}  // namespace
}  // namespace lazuli
