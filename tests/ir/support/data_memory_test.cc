#include "ir/support/data_memory.h"

#include <cstdint>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/support/status.h"

namespace lazuli::ir {
namespace {

TEST(DataMemoryTest, IsAlignedAndNeverNullWhereThereIsSome) {
  for (const std::size_t bytes : {0, 1, 63, 64, 65, 5000}) {
    std::byte* const data = AllocateData(bytes);
    ASSERT_NE(data, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % kDataAlignment, 0u);
    FreeData(data);
  }
  EXPECT_EQ(AllocateData(SIZE_MAX), nullptr);
  EXPECT_EQ(AllocateData(SIZE_MAX - kDataAlignment), nullptr);
}

TEST(DataMemoryTest, AFaultFailsOneAllocation) {
  const ScopedDataFault fault(1);
  std::byte* const first = AllocateData(8);
  EXPECT_FALSE(fault.happened());
  EXPECT_EQ(AllocateData(8), nullptr);
  EXPECT_TRUE(fault.happened());
  std::byte* const third = AllocateData(8);
  EXPECT_NE(first, nullptr);
  EXPECT_NE(third, nullptr);
  FreeData(first);
  FreeData(third);
}

TEST(DataMemoryTest, WhatHasNoMemorySaysHowMuchItWanted) {
  const NoDataMemory error(4096);
  EXPECT_STREQ(error.what(), "out of memory: an array of 4096 bytes could not be allocated");
  EXPECT_EQ(error.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(error.status()), error.what());
}

TEST(DataMemoryDeathTest, OtherwiseTheProcessEndsWithASentence) {
  EXPECT_DEATH(EndWithoutMemory("running a program", "/home/me/train.cc", 41),
               "^lazuli: out of memory running a program \\(train.cc:41\\); the process ends\n");
  EXPECT_DEATH(EndWithoutMemory("in a call of the library", "", 0),
               "^lazuli: out of memory in a call of the library; the process ends\n");
}

}  // namespace
}  // namespace lazuli::ir
