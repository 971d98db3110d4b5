#include "backend/runtime/arena.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace lazuli::backend {
namespace {

TEST(ArenaTest, BuffersThatNeverLiveTogetherShareMemory) {
  const ArenaPlan plan = PlanArena({{100, 0, 1}, {100, 2, 3}, {50, 4, 5}});
  EXPECT_EQ(plan.bytes, 128);
  EXPECT_EQ(plan.offsets, (std::vector<int64_t>{0, 0, 0}));
}

TEST(ArenaTest, BuffersThatLiveTogetherDoNotOverlap) {
  const std::vector<Lifetime> lifetimes = {
      {100, 0, 2}, {300, 1, 3}, {64, 2, 2}, {200, 3, 4}, {1, 0, 4}};
  const ArenaPlan plan = PlanArena(lifetimes);
  for (std::size_t i = 0; i < lifetimes.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % 64, 0);
    EXPECT_LE(plan.offsets[i] + lifetimes[i].bytes, plan.bytes);
    for (std::size_t j = 0; j < i; ++j) {
      const bool together =
          lifetimes[i].first <= lifetimes[j].last && lifetimes[j].first <= lifetimes[i].last;
      if (!together) continue;
      EXPECT_TRUE(plan.offsets[i] + lifetimes[i].bytes <= plan.offsets[j] ||
                  plan.offsets[j] + lifetimes[j].bytes <= plan.offsets[i])
          << i << " and " << j;
    }
  }
}

TEST(ArenaTest, BuffersApartHaveRoomBehindThem) {
  const ArenaPlan plan = PlanApart({{100, 0, 1}, {0, 2, 3}, {64, 4, 5}});
  EXPECT_EQ(plan.offsets, (std::vector<int64_t>{0, 192, 256}));
  EXPECT_EQ(plan.bytes, 384);
}

TEST(ArenaTest, TakesTheTightestGap) {
  // Step 2 finds gaps of 256 and 128 bytes between the long-lived ones.
  const ArenaPlan plan =
      PlanArena({{1024, 0, 3}, {256, 0, 1}, {512, 0, 3}, {128, 2, 3}, {256, 2, 3}});
  EXPECT_EQ(plan.offsets[4], plan.offsets[1]);
}

// Of which first and last are random, or nested as what a backward pass reads.
std::vector<Lifetime> ManyLifetimes(std::mt19937& random, int64_t count, bool nested) {
  std::vector<Lifetime> lifetimes;
  for (int64_t k = 0; k < count; ++k) {
    const auto bytes = static_cast<int64_t>(random() % 5000);
    const int64_t first = nested ? k : static_cast<int64_t>(random() % 4000);
    const int64_t last = nested ? 2 * count - k : first + static_cast<int64_t>(random() % 40);
    lifetimes.push_back({bytes, first, last});
  }
  return lifetimes;
}

TEST(ArenaTest, ThousandsDoNotOverlapAndFillTheArena) {
  std::mt19937 random(0);
  for (const bool nested : {false, true}) {
    const std::vector<Lifetime> lifetimes = ManyLifetimes(random, 6000, nested);
    const ArenaPlan plan = PlanArena(lifetimes);
    std::vector<std::pair<int64_t, std::size_t>> by_offset;
    for (std::size_t i = 0; i < lifetimes.size(); ++i) by_offset.emplace_back(plan.offsets[i], i);
    std::sort(by_offset.begin(), by_offset.end());
    std::vector<int64_t> live(16000, 0);
    for (std::size_t a = 0; a < by_offset.size(); ++a) {
      const std::size_t i = by_offset[a].second;
      const int64_t end = plan.offsets[i] + lifetimes[i].bytes;
      ASSERT_EQ(plan.offsets[i] % 64, 0);
      ASSERT_LE(end, plan.bytes);
      for (std::size_t b = a + 1; b < by_offset.size() && by_offset[b].first < end; ++b) {
        const Lifetime& other = lifetimes[by_offset[b].second];
        ASSERT_TRUE(other.bytes == 0 || lifetimes[i].last < other.first ||
                    other.last < lifetimes[i].first);
      }
      for (int64_t t = lifetimes[i].first; t <= lifetimes[i].last; ++t)
        live[static_cast<std::size_t>(t)] += (lifetimes[i].bytes + 63) / 64 * 64;
    }
    const int64_t most = *std::max_element(live.begin(), live.end());
    EXPECT_LE(plan.bytes, nested ? most : most + most / 3);
  }
}

TEST(ArenaTest, NothingNeedsNothing) { EXPECT_EQ(PlanArena({}).bytes, 0); }

}  // namespace
}  // namespace lazuli::backend
