#include "backend/cpu/passes/arena.h"

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

TEST(ArenaTest, TakesTheTightestGap) {
  // Step 2 finds gaps of 256 and 128 bytes between the long-lived ones.
  const ArenaPlan plan =
      PlanArena({{1024, 0, 3}, {256, 0, 1}, {512, 0, 3}, {128, 2, 3}, {256, 2, 3}});
  EXPECT_EQ(plan.offsets[4], plan.offsets[1]);
}

TEST(ArenaTest, NothingNeedsNothing) { EXPECT_EQ(PlanArena({}).bytes, 0); }

}  // namespace
}  // namespace lazuli::backend
