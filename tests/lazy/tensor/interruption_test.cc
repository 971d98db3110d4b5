#include "lazy/tensor/interruption.h"

#include <gtest/gtest.h>

namespace lazuli::lazy {
namespace {

std::mutex mu;
std::condition_variable condition;
int asked = 0;
bool lock_was_free = false;
int stop_at = 0;

bool Ask() {
  lock_was_free = mu.try_lock();
  if (lock_was_free) mu.unlock();
  return ++asked == stop_at;
}

class InterruptionTest : public testing::Test {
 protected:
  InterruptionTest() {
    asked = 0;
    SetInterruptCheck(&Ask);
  }
  ~InterruptionTest() override { SetInterruptCheck(nullptr); }
};

TEST_F(InterruptionTest, EndsAWaitWhenTheCheckSaysSo) {
  stop_at = 2;
  std::unique_lock lock(mu);
  const absl::Status status = InterruptibleWait(condition, lock, [] { return false; });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(asked, 2);
  EXPECT_TRUE(lock_was_free);
  EXPECT_TRUE(lock.owns_lock());
}

TEST_F(InterruptionTest, WhatIsDoneIsNotAskedAbout) {
  stop_at = 1;
  std::unique_lock lock(mu);
  EXPECT_TRUE(InterruptibleWait(condition, lock, [] { return true; }).ok());
  EXPECT_EQ(asked, 0);
}

TEST_F(InterruptionTest, GoesOnWaitingUntilDone) {
  stop_at = 0;
  std::unique_lock lock(mu);
  EXPECT_TRUE(InterruptibleWait(condition, lock, [] { return asked == 3; }).ok());
}

}  // namespace
}  // namespace lazuli::lazy
