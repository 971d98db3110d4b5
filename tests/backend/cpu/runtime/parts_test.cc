#include "backend/cpu/runtime/parts.h"

#include <atomic>
#include <vector>

#include <gtest/gtest.h>

#include "ir/support/parallel_for.h"
#include "ir/support/status.h"

namespace lazuli::cpu {
namespace {

TEST(PartsTest, EveryPartRunsOnce) {
  std::vector<std::atomic<int>> runs(1000);
  const absl::Status status = ForEachPart(1000, 2, [&](Part part) {
    EXPECT_EQ(part.count, 1000);
    EXPECT_LT(part.worker, 2);
    ++runs[static_cast<std::size_t>(part.index)];
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok());
  for (const auto& count : runs) EXPECT_EQ(count.load(), 1);
}

TEST(PartsTest, AnErrorEndsTheRun) {
  std::atomic<int> runs{0};
  const absl::Status status = ForEachPart(1000, 1, [&](Part part) -> absl::Status {
    ++runs;
    if (part.index == 3) return Internal("part ", part.index);
    return absl::OkStatus();
  });
  EXPECT_EQ(Message(status), "part 3");
  EXPECT_EQ(runs.load(), 4);
}

TEST(PartsTest, ThereAreNoMoreWorkersThanPartsOrThreads) {
  EXPECT_EQ(WorkersFor(1, 8), 1);
  EXPECT_EQ(WorkersFor(100, 1), 1);
  EXPECT_EQ(WorkersFor(0, 8), 1);
  EXPECT_LE(WorkersFor(1 << 20, 1 << 20), NumThreads());
}

}  // namespace
}  // namespace lazuli::cpu
