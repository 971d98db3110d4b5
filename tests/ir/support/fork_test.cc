#include "ir/support/fork.h"

#include <atomic>
#include <mutex>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "ir/support/flags.h"
#include "ir/support/metrics.h"
#include "ir/support/parallel_for.h"
#include "ir/support/pool.h"
#include "ir/support/status.h"
#include "tests/support/fork.h"

namespace lazuli::ir {
namespace {

using test::InChild;

TEST(ForkTest, LocksThatOtherThreadsHoldAreFreeInTheChild) {
  ForkMutex mutex;
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) {
      const std::lock_guard lock(mutex);
      PoolFree(PoolAllocate(40), 40);
      AddNamed("fork_test");
    }
  });
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(InChild([&] {
      const std::lock_guard lock(mutex);
      AddNamed("fork_test");
      return ForkError().ok();
    }));
  }
  stop = true;
  other.join();
  EXPECT_TRUE(ForkError().ok());
}

TEST(ForkTest, TheChildHasThreadsOfItsOwn) {
  ASSERT_TRUE(SetFlag("LAZULI_NUM_THREADS", "3").ok());
  const auto sum = [] {
    std::atomic<int64_t> total{0};
    ParallelFor(3000, 1, [&](int64_t begin, int64_t end) { total += end - begin; });
    return total == 3000;
  };
  EXPECT_TRUE(sum());
  EXPECT_TRUE(InChild(sum));
  EXPECT_TRUE(InChild([&] { return InChild(sum); }));
  EXPECT_TRUE(sum());
  ASSERT_TRUE(SetFlag("LAZULI_NUM_THREADS", "0").ok());
}

// Somebody who never comes to rest is not waited for.
TEST(ForkTest, AParticipantAtWorkMakesTheChildSaySo) {
  SetForkPatience(std::chrono::milliseconds(50));
  ForkMutex mutex;
  mutex.lock();  // by the thread that forks: from inside a call
  EXPECT_TRUE(InChild([&] {
    const std::lock_guard lock(mutex);  // free, all the same
    return Message(ForkError()).find("forked while a thread was at work") != std::string::npos;
  }));
  mutex.unlock();
  SetForkPatience(std::chrono::seconds(10));
  EXPECT_TRUE(ForkError().ok());
}

}  // namespace
}  // namespace lazuli::ir
