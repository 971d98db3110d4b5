// Banks of the scratchpad: who waits for whom, and what a program notices of it.
#include "backend/npu/sim/banks.h"

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/support/str.h"
#include "tests/backend/npu/sim/run_program.h"

namespace lazuli::npu {
namespace {

using ::testing::ElementsAre;

Config FourBanks() {
  Config config;
  EXPECT_TRUE(SetKeys("spm.banks=4", config).ok());
  return config;
}

TEST(BankWordsTest, CountsTheWordsOfEachBank) {
  BankWords words(FourBanks());
  EXPECT_TRUE(words.empty());
  words.Add(60, 8);
  EXPECT_THAT(words.words(), ElementsAre(1, 1, 0, 0));
  words.Add(0, 64 * 9);
  EXPECT_THAT(words.words(), ElementsAre(4, 3, 2, 2));
  words.Clear();
  words.Add(0, Walk{2, {4, 32}, {256, 4}, 4});  // four rows of two words, all in banks 0 and 1
  EXPECT_THAT(words.words(), ElementsAre(4, 4, 0, 0));
  words.Clear();
  words.Add(64, Walk{2, {10, 16}, {0, 4}, 4});  // the same row ten times
  EXPECT_THAT(words.words(), ElementsAre(0, 10, 0, 0));
  words.Clear();
  words.Add(64, Walk{2, {16, 10}, {4, 0}, 4});  // each element ten times, one behind the other
  EXPECT_THAT(words.words(), ElementsAre(0, 1, 0, 0));
}

TEST(BankWordsTest, AWalkIsItsElementsOneByOne) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) {
    Walk walk{1 + static_cast<int>(random() % 4), {}, {}, 4};
    for (int d = 0; d < walk.rank; ++d) {
      walk.dim[d] = 1 + static_cast<int64_t>(random() % 5);
      walk.stride[d] = 4 * (static_cast<int64_t>(random() % 101) - 50);
    }
    std::vector<int64_t> expected(4, 0);
    int64_t index[5] = {}, before = -1;
    for (bool more = true; more;) {
      int64_t at = 8192;
      for (int d = 0; d < walk.rank; ++d) at += index[d] * walk.stride[d];
      if (at / 64 != before) ++expected[static_cast<std::size_t>(at / 64 % 4)];
      before = at / 64;
      int d = walk.rank - 1;
      while (d >= 0 && ++index[d] == walk.dim[d]) index[d--] = 0;
      more = d >= 0;
    }
    BankWords words(FourBanks());
    words.Add(8192, walk);
    int64_t counted = 0, all = 0;
    for (std::size_t b = 0; b < 4; ++b) {
      // A level of stride 0 repeats what is inside it, whatever came just before.
      EXPECT_GE(words.words()[b], expected[b]) << i;
      counted += words.words()[b];
      all += expected[b];
    }
    bool repeats = false;
    for (int d = 0; d < walk.rank; ++d) repeats |= walk.stride[d] == 0 && walk.dim[d] > 1;
    if (!repeats) {
      EXPECT_EQ(counted, all) << i;
    }
  }
}

// Bank 0 alone.
BankWords Words(int64_t n, int bank = 0) {
  BankWords words(FourBanks());
  words.Add({{bank, static_cast<int32_t>(n)}});
  return words;
}

TEST(BanksTest, AnInstructionLastsUntilItHasItsWords) {
  Banks banks;
  std::vector<Banks::Delay> delayed;
  EXPECT_EQ(banks.Take(1, BankRank::kCopy, 10, 20, Words(5), 10, 10, delayed), 30);
  EXPECT_EQ(banks.Take(1, BankRank::kCopy, 30, 20, Words(50), 30, 30, delayed), 80);
  EXPECT_THAT(delayed, ::testing::IsEmpty());
}

TEST(BanksTest, TheLowerRankGetsWhatIsLeft) {
  Banks banks;
  std::vector<Banks::Delay> delayed;
  EXPECT_EQ(banks.Take(1, BankRank::kVector, 0, 100, Words(75), 0, 0, delayed), 100);
  // One word in four clocks until 100, then each clock.
  EXPECT_EQ(banks.Take(2, BankRank::kCopy, 0, 50, Words(50), 0, 0, delayed), 125);
  EXPECT_EQ(banks.Take(3, BankRank::kCopy, 0, 50, Words(50, 1), 0, 0, delayed), 50);
  EXPECT_THAT(delayed, ::testing::IsEmpty());
}

TEST(BanksTest, WhoeverComesFirstInRankPutsTheOthersOff) {
  Banks banks;
  std::vector<Banks::Delay> delayed;
  EXPECT_EQ(banks.Take(1, BankRank::kCopy, 0, 100, Words(100), 0, 0, delayed), 100);
  EXPECT_EQ(banks.Take(2, BankRank::kVector, 50, 100, Words(100), 50, 0, delayed), 150);
  ASSERT_EQ(delayed.size(), 1u);
  EXPECT_EQ(delayed[0].track, 1);
  EXPECT_EQ(delayed[0].end, 200);
  // What has ended is not put off any more, and forgotten then.
  EXPECT_EQ(banks.Take(3, BankRank::kMatrix, 200, 10, Words(10), 200, 200, delayed), 210);
  EXPECT_THAT(delayed, ::testing::IsEmpty());
}

// A multiplication whose 512 rows lie in one bank of the sixteen, and a fill beside it, in that
// bank or in another one.
std::string Beside(int64_t fill_at) {
  return Str(R"(
.desc weights dim(1024) src(1) dst(1) elem 1
.desc row dim(512) src(1024) dst(0) elem 1
.desc area dim(512,32) src(0,0) dst(1024,1) elem 1
.desc column dim(200,32) src(0,0) dst(1024,1) elem 1
dma.fill.0 [r1], weights, 1
dma.fill.0 [r1], area, 1
fence all
mx.ldw.s8 [r1], k=32, n=32 sig s1+1
mx.swp
movi r2, )",
             fill_at, R"(
mx.mm.s8 [r1], acc[0], row wait s1>=1
dma.fill.0 [r2], column, 2
fence all
halt
)");
}

TEST(BanksTest, UnitsOfAMachineWaitForEachOther) {
  // The same banks 0 as the rows, behind them; and bank 1.
  const Outcome same = RunProgram(MustAssemble(Beside(600 * 1024))),
                other = RunProgram(MustAssemble(Beside(600 * 1024 + 64)));
  ASSERT_FALSE(same.fault) << same.FaultText();
  ASSERT_FALSE(other.fault) << other.FaultText();
  const auto ld0 = static_cast<std::size_t>(TrackOf(Queue::kLd0));
  // 200 words of one bank take longer than 4 + 6400 / 64 clocks, and wait until the product has had
  // its 512.
  const int64_t alone = other.counters[0].busy[ld0], beside = same.counters[0].busy[ld0];
  EXPECT_EQ(beside - alone, same.counters[0].bank_cycles - other.counters[0].bank_cycles);
  EXPECT_GT(beside - alone, 480);
  EXPECT_LE(beside - alone, 512);
  EXPECT_EQ(same.counters[0].busy[kMxTrack], other.counters[0].busy[kMxTrack]);
  EXPECT_GT(same.cycles, other.cycles);
  EXPECT_EQ(RunProgram(MustAssemble(Beside(600 * 1024)), "", {}, {.timing = false})
                .counters[0]
                .bank_cycles,
            0);
}

}  // namespace
}  // namespace lazuli::npu
