// Allocator: 64-byte aligned host memory in size classes, with a cache of freed blocks.
// Thread-safe.
//
// A training step frees and asks for the same sizes again and again; fresh pages would cost more
// than many kernels. Size classes are four to a power of two, so at most a fifth of a block is
// unused. Cached blocks are given back to the system, those that were freed first, while they and
// what is in use exceed twice the peak that was in use at one time, or stand in the way of a block
// within LAZULI_MEMORY_LIMIT. So programs that take turns, as forward and backward graphs do, find
// the blocks of their last turn, and programs that nobody runs any more lose theirs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "absl/status/statusor.h"

#include "backend/client/client.h"
#include "ir/support/data_memory.h"
#include "ir/support/fork.h"

namespace lazuli::backend {

inline constexpr std::size_t kBufferAlignment = ir::kDataAlignment;

struct Block {
  std::byte* data = nullptr;
  std::size_t capacity = 0;
};

class Allocator {
 public:
  Allocator() = default;
  ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // A block of at least `bytes` (and at least one cache line). ResourceExhausted where the system
  // has none left.
  absl::StatusOr<Block> Allocate(std::size_t bytes);
  void Free(Block block);
  MemoryStats stats() const;

  // The capacity that Allocate(bytes) gives.
  static std::size_t Capacity(std::size_t bytes);

 private:
  static constexpr std::size_t kClasses = 256;

  struct Freed {
    std::byte* data;
    int64_t at;  // how many had been freed before
  };

  // Under the lock: gives cached blocks back to the system until at most `bytes` are cached.
  void Trim(int64_t bytes);

  mutable ir::ForkMutex mutex_;
  std::array<std::vector<Freed>, kClasses> free_;  // by size class; the last one freed at the end
  int64_t freed_ = 0;
  MemoryStats stats_;
};

// A block that frees itself.
class OwnedBlock {
 public:
  OwnedBlock() = default;
  OwnedBlock(Allocator* allocator, Block block) : allocator_(allocator), block_(block) {}
  OwnedBlock(OwnedBlock&& other) noexcept
      : allocator_(other.allocator_), block_(std::exchange(other.block_, {})) {}
  OwnedBlock& operator=(OwnedBlock&& other) noexcept {
    std::swap(allocator_, other.allocator_);
    std::swap(block_, other.block_);
    return *this;
  }
  ~OwnedBlock() {
    if (block_.data != nullptr) allocator_->Free(block_);
  }
  Block Release() { return std::exchange(block_, {}); }
  std::byte* data() const { return block_.data; }
  std::size_t capacity() const { return block_.capacity; }

 private:
  Allocator* allocator_ = nullptr;
  Block block_;
};

}  // namespace lazuli::backend
