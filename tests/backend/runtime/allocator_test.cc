#include "backend/runtime/allocator.h"

#include <gtest/gtest.h>

#include "ir/support/flags.h"
#include "ir/support/metrics.h"
#include "ir/support/status.h"

namespace lazuli::backend {
namespace {

TEST(AllocatorTest, SizeClassesWasteAtMostAFifth) {
  for (std::size_t bytes = 64; bytes < (std::size_t{1} << 20); bytes += bytes / 7 + 1) {
    const std::size_t capacity = Allocator::Capacity(bytes);
    EXPECT_GE(capacity, bytes);
    EXPECT_LE(static_cast<double>(capacity - bytes), 0.2 * static_cast<double>(capacity)) << bytes;
    EXPECT_EQ(Allocator::Capacity(capacity), capacity);
  }
  EXPECT_EQ(Allocator::Capacity(0), 64u);
}

TEST(AllocatorTest, AFreedBlockServesTheNextOfItsClass) {
  Allocator allocator;
  const Block first = *allocator.Allocate(1000);
  allocator.Free(first);
  EXPECT_EQ(allocator.stats().cached_bytes, 1024);
  const Block second = *allocator.Allocate(900);
  EXPECT_EQ(second.data, first.data);
  EXPECT_EQ(allocator.stats().cached_bytes, 0);
  EXPECT_EQ(allocator.stats().bytes_in_use, 1024);
  EXPECT_EQ(allocator.stats().peak_bytes, 1024);
  allocator.Free(second);
}

// A program of ever new sizes does not keep a block of each.
TEST(AllocatorTest, WhatIsHeldNeverExceedsTwiceThePeak) {
  Allocator allocator;
  const auto check = [&] {
    const MemoryStats stats = allocator.stats();
    EXPECT_LE(stats.bytes_in_use + stats.cached_bytes, 2 * stats.peak_bytes);
  };
  for (std::size_t bytes = 1000; bytes < 100000; bytes += 1000) {
    const Block held = *allocator.Allocate(bytes);
    allocator.Free(*allocator.Allocate(bytes / 2));
    check();
    allocator.Free(held);
    check();
  }
  EXPECT_GT(allocator.stats().cached_bytes, 0);
}

// A forward graph keeps results for the backward graph, whose scratch memory has another size.
TEST(AllocatorTest, ProgramsThatTakeTurnsFindTheirBlocksAgain) {
  Allocator allocator;
  int64_t before = 0;
  for (int turn = 0; turn < 4; ++turn) {
    if (turn == 1) before = ir::CounterValue("buffer.allocations");
    const Block forward = *allocator.Allocate(60000), kept = *allocator.Allocate(40000);
    allocator.Free(forward);
    const Block backward = *allocator.Allocate(90000), gradients = *allocator.Allocate(20000);
    for (const Block block : {backward, kept, gradients}) allocator.Free(block);
  }
  EXPECT_EQ(ir::CounterValue("buffer.allocations"), before);
}

TEST(AllocatorTest, ProgramsThatNobodyRunsLoseTheirBlocksFirst) {
  Allocator allocator;
  std::vector<Block> blocks;
  for (int i = 0; i < 10; ++i) blocks.push_back(*allocator.Allocate(10000));
  for (const Block block : blocks) allocator.Free(block);
  int64_t before = 0;
  for (int run = 0; run < 4; ++run) {  // larger than all of these
    if (run == 1) before = ir::CounterValue("buffer.allocations");
    const Block large = *allocator.Allocate(90000), small = *allocator.Allocate(16000);
    allocator.Free(large);
    allocator.Free(small);
  }
  EXPECT_EQ(ir::CounterValue("buffer.allocations"), before);
}

TEST(AllocatorTest, TheLimitHoldsForWhatIsInUseAndWhatIsCached) {
  ASSERT_TRUE(ir::SetFlag("LAZULI_MEMORY_LIMIT", "8K").ok());
  Allocator allocator;
  const Block held = *allocator.Allocate(4096);
  allocator.Free(*allocator.Allocate(4096));
  EXPECT_EQ(allocator.stats().cached_bytes, 4096);
  const Block small = *allocator.Allocate(1024);  // the cached block makes room
  EXPECT_EQ(allocator.stats().cached_bytes, 0);
  const auto refused = allocator.Allocate(4096);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ir::Message(refused.status()),
            "out of memory: a buffer of 4096 bytes does not fit within 8192 (LAZULI_MEMORY_LIMIT); "
            "5120 in use");
  allocator.Free(held);
  allocator.Free(small);
  ASSERT_TRUE(ir::SetFlag("LAZULI_MEMORY_LIMIT", "0").ok());
}

#ifdef __SANITIZE_ADDRESS__
TEST(AllocatorDeathTest, WhatIsBehindABlockAndWhatIsFreeIsForbidden) {
  Allocator allocator;
  const Block block = *allocator.Allocate(100);
  auto* const data = const_cast<volatile std::byte*>(block.data);
  data[99] = std::byte{1};
  EXPECT_DEATH(data[100] = std::byte{1}, "use-after-poison");
  allocator.Free(block);
  EXPECT_DEATH(data[0] = std::byte{1}, "use-after-poison");
}
#endif

}  // namespace
}  // namespace lazuli::backend
