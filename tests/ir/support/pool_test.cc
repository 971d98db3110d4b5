#include "ir/support/pool.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/small_stack.h"

namespace lazuli::ir {
namespace {

TEST(PoolTest, BlocksOfAllSizesAreAlignedAndApart) {
  struct Block {
    unsigned char* data;
    std::size_t bytes;
    unsigned char mark;
  };
  std::vector<Block> blocks;
  for (std::size_t bytes = 1; bytes < 20000; bytes += bytes / 9 + 1) {
    for (int i = 0; i < 3; ++i) {
      const auto mark = static_cast<unsigned char>(blocks.size());
      blocks.push_back({static_cast<unsigned char*>(PoolAllocate(bytes)), bytes, mark});
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back().data) % alignof(std::max_align_t),
                0);
      std::memset(blocks.back().data, mark, bytes);
    }
  }
  for (const Block& block : blocks) {
    for (std::size_t i = 0; i < block.bytes; ++i) ASSERT_EQ(block.data[i], block.mark);
    PoolFree(block.data, block.bytes);
  }
}

TEST(PoolTest, AFreedBlockServesTheNextOfItsSize) {
  if (test::kSanitized) GTEST_SKIP() << "the pool is off";
  void* first = PoolAllocate(100);
  PoolFree(first, 100);
  void* second = PoolAllocate(97);  // of the same class
  EXPECT_EQ(first, second);
  PoolFree(second, 97);
}

// By an object that goes after what the pool has of the thread, as objects from before main do.
TEST(PoolTest, WhatAThreadFreesAtItsVeryEndServesTheNext) {
  struct Late {
    ~Late() {
      for (int i = 0; i < 3; ++i) {
        void* const block = PoolAllocate(176);
        std::memset(block, 0xff, 176);
        PoolFree(block, 176);
      }
    }
  };
  std::thread([] {
    thread_local const Late late;
    (void)&late;
    PoolFree(PoolAllocate(176), 176);
  }).join();
  void* const block = PoolAllocate(176);
  std::memset(block, 0xff, 176);
  PoolFree(block, 176);
}

// One thread makes what another drops, as a run drops what the recorder made.
TEST(PoolTest, WhatOneThreadFreesServesTheOthers) {
  if (test::kSanitized) GTEST_SKIP() << "the pool is off";
  constexpr std::size_t kBytes = 208, kBlocks = 1000;
  std::set<void*> seen;
  for (int round = 0; round < 50; ++round) {
    std::vector<void*> blocks;
    for (std::size_t i = 0; i < kBlocks; ++i) blocks.push_back(PoolAllocate(kBytes));
    seen.insert(blocks.begin(), blocks.end());
    std::thread([&] {
      for (void* block : blocks) PoolFree(block, kBytes);
    }).join();
  }
  EXPECT_LT(seen.size(), 2 * kBlocks);
}

struct Base : public Pooled {
  virtual ~Base() = default;
};
struct Derived final : public Base {
  std::array<int, 100> numbers{};
};

TEST(PoolTest, AnObjectIsFreedWithItsOwnSize) {
  if (test::kSanitized) GTEST_SKIP() << "the pool is off";
  std::unique_ptr<Base> object = std::make_unique<Derived>();
  const void* address = object.get();
  object.reset();
  object = std::make_unique<Derived>();
  EXPECT_EQ(object.get(), address);
}

TEST(PoolTest, ContainersUseIt) {
  PooledVector<int> numbers;
  for (int i = 0; i < 10000; ++i) numbers.push_back(i);
  EXPECT_EQ(numbers[9999], 9999);
  const auto shared = std::allocate_shared<Derived>(PoolAllocator<Derived>());
  EXPECT_EQ(shared->numbers[99], 0);
}

}  // namespace
}  // namespace lazuli::ir
