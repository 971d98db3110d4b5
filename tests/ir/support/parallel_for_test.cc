#include "ir/support/parallel_for.h"

#include <atomic>
#include <cfenv>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "ir/support/flags.h"

namespace lazuli::ir {
namespace {

class ParallelForTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(SetFlag("LAZULI_NUM_THREADS", "3").ok()); }
  void TearDown() override { ASSERT_TRUE(SetFlag("LAZULI_NUM_THREADS", "0").ok()); }
};

TEST_F(ParallelForTest, VisitsEveryIndexOnce) {
  for (int64_t n : {0, 1, 2, 3, 7, 100, 1001}) {
    for (int64_t grain : {1, 2, 40, 5000}) {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(n));
      ParallelFor(n, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
      });
      for (const auto& count : visits) EXPECT_EQ(count, 1) << n << " " << grain;
    }
  }
}

std::set<std::pair<int64_t, int64_t>> Chunks(int64_t n, int64_t grain) {
  std::mutex mutex;
  std::set<std::pair<int64_t, int64_t>> chunks;
  ParallelFor(n, grain, [&](int64_t begin, int64_t end) {
    std::lock_guard lock(mutex);
    chunks.emplace(begin, end);
  });
  return chunks;
}

TEST_F(ParallelForTest, ChunksDependOnSizeGrainAndThreadsOnly) {
  using Set = std::set<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(Chunks(10, 1), (Set{{0, 4}, {4, 8}, {8, 10}}));
  EXPECT_EQ(Chunks(10, 6), (Set{{0, 6}, {6, 10}}));
  EXPECT_EQ(Chunks(10, 10), (Set{{0, 10}}));
  EXPECT_EQ(Chunks(2, 1), (Set{{0, 1}, {1, 2}}));
}

TEST_F(ParallelForTest, NestedCallsRunInTheirCallersThread) {
  std::atomic<int> total = 0;
  ParallelFor(3, 1, [&](int64_t, int64_t) {
    const auto thread = std::this_thread::get_id();
    ParallelFor(30, 1, [&](int64_t begin, int64_t end) {
      EXPECT_EQ(std::this_thread::get_id(), thread);
      total += static_cast<int>(end - begin);
    });
  });
  EXPECT_EQ(total, 90);
}

// Whether additions of this thread round up.
bool RoundsUp() {
  volatile float one = 1, tiny = 1e-20f;
  return one + tiny > 1;
}

TEST_F(ParallelForTest, TheCallersRoundingModeHoldsInEveryChunk) {
  std::fesetround(FE_UPWARD);
  std::atomic<int> upward = 0;
  ParallelFor(3, 1, [&](int64_t, int64_t) { upward += RoundsUp(); });
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(upward, 3);
  ParallelFor(3, 1, [&](int64_t, int64_t) { upward += RoundsUp(); });
  EXPECT_EQ(upward, 3);
}

TEST_F(ParallelForTest, ManyRegionsInARow) {
  int64_t sum = 0;
  for (int i = 0; i < 1000; ++i) {
    std::atomic<int64_t> part = 0;
    ParallelFor(64, 1, [&](int64_t begin, int64_t end) { part += end - begin; });
    sum += part;
  }
  EXPECT_EQ(sum, 64000);
}

TEST_F(ParallelForTest, CallsFromSeveralThreadsAreAllDone) {
  std::atomic<int64_t> sum = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i)
        ParallelFor(100, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum, 4 * 50 * 100);
}

// A team of two: the caller and a thread that rounds down.
int team_calls = 0;
bool rounds_down_afterwards = false;
void RunOnTeam(void (*work)(void*), void* data) {
  ++team_calls;
  std::thread other([&] {
    std::fesetround(FE_DOWNWARD);
    work(data);
    rounds_down_afterwards = std::fegetround() == FE_DOWNWARD;
  });
  work(data);
  other.join();
}

TEST_F(ParallelForTest, LoopsRunOnTheTeamOfTheirThreadAndLeaveItAsItWas) {
  using Set = std::set<std::pair<int64_t, int64_t>>;
  std::atomic<int> upward = 0;
  {
    const ScopedTeam team(&RunOnTeam);
    EXPECT_EQ(Chunks(10, 1), (Set{{0, 4}, {4, 8}, {8, 10}}));
    EXPECT_EQ(team_calls, 1);
    EXPECT_EQ(Chunks(10, 10), (Set{{0, 10}}));  // which needs no team
    EXPECT_EQ(team_calls, 1);
    std::fesetround(FE_UPWARD);
    ParallelFor(3, 1, [&](int64_t, int64_t) { upward += RoundsUp(); });
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(team_calls, 2);
  }
  EXPECT_EQ(upward, 3);
  EXPECT_TRUE(rounds_down_afterwards);
  ParallelFor(3, 1, [](int64_t, int64_t) {});
  EXPECT_EQ(team_calls, 2);
}

TEST(NumThreadsTest, FlagDecidesElseTheMachine) {
  EXPECT_GE(NumThreads(), 1);
  ASSERT_TRUE(SetFlag("LAZULI_NUM_THREADS", "5").ok());
  EXPECT_EQ(NumThreads(), 5);
  ASSERT_TRUE(SetFlag("LAZULI_NUM_THREADS", "0").ok());
}

}  // namespace
}  // namespace lazuli::ir
