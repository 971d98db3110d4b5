#include "backend/runtime/allocator.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "backend/runtime/guard.h"
#include "ir/support/data_memory.h"
#include "ir/support/flags.h"
#include "ir/support/metrics.h"
#include "ir/support/status.h"

namespace lazuli::backend {
namespace {

// Classes 0, 1, 2, ... hold 64, 80, 96, 112, 128, 160, ... bytes.
constexpr std::size_t kSmallest = kBufferAlignment;

std::size_t ClassOf(std::size_t bytes) {
  if (bytes <= kSmallest) return 0;
  const std::size_t power =
      static_cast<std::size_t>(std::bit_width(bytes - 1)) - 1;  // 2^power < bytes
  const std::size_t quarter = ((bytes - 1) >> (power - 2)) & 3;
  return (power - 6) * 4 + quarter + 1;
}

std::size_t ClassCapacity(std::size_t size_class) {
  const std::size_t power = size_class / 4 + 6;
  return (std::size_t{4} + size_class % 4) << (power - 2);
}

}  // namespace

std::size_t Allocator::Capacity(std::size_t bytes) { return ClassCapacity(ClassOf(bytes)); }

Allocator::~Allocator() {
  for (auto& blocks : free_) {
    for (const Freed& block : blocks) ir::FreeData(block.data);
  }
}

absl::StatusOr<Block> Allocator::Allocate(std::size_t bytes) {
  const std::size_t size_class = ClassOf(bytes);
  const std::size_t capacity = ClassCapacity(size_class);
  const int64_t limit = flags().memory_limit();
  Block block{nullptr, capacity};
  {
    std::lock_guard lock(mutex_);
    const int64_t room = limit - stats_.bytes_in_use - static_cast<int64_t>(capacity);
    if (limit > 0 && room < 0) {
      return ResourceExhausted("out of memory: a buffer of ", bytes, " bytes does not fit within ",
                               limit, " (LAZULI_MEMORY_LIMIT); ", stats_.bytes_in_use, " in use");
    }
    if (!free_[size_class].empty()) {
      block.data = free_[size_class].back().data;
      free_[size_class].pop_back();
      stats_.cached_bytes -= static_cast<int64_t>(capacity);
    }
    if (limit > 0) Trim(room);
  }
  const bool reused = block.data != nullptr;
  if (!reused)
    block.data = ir::AllocateData(capacity);
  else if (ir::TakeDataFault())
    ir::FreeData(std::exchange(block.data, nullptr));
  if (block.data == nullptr) {
    return ResourceExhausted("out of memory: a buffer of ", bytes,
                             " bytes could not be allocated (", stats().bytes_in_use, " in use)");
  }
  Add(reused ? Counter::kBufferReuses : Counter::kBufferAllocations);
  Allow(block.data, bytes);
  Forbid(block.data + bytes, capacity - bytes);
  std::lock_guard lock(mutex_);
  stats_.bytes_in_use += static_cast<int64_t>(capacity);
  stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.bytes_in_use);
  return block;
}

void Allocator::Free(Block block) {
  Forbid(block.data, block.capacity);
  std::lock_guard lock(mutex_);
  stats_.bytes_in_use -= static_cast<int64_t>(block.capacity);
  stats_.cached_bytes += static_cast<int64_t>(block.capacity);
  free_[ClassOf(block.capacity)].push_back({block.data, freed_++});
  Trim(2 * stats_.peak_bytes - stats_.bytes_in_use);
}

void Allocator::Trim(int64_t bytes) {
  const auto first_freed = [](const std::vector<Freed>& blocks) {
    return blocks.empty() ? INT64_MAX : blocks.front().at;
  };
  while (stats_.cached_bytes > std::max<int64_t>(bytes, 0)) {
    const auto oldest = std::ranges::min_element(free_, {}, first_freed);
    ir::FreeData(oldest->front().data);
    oldest->erase(oldest->begin());
    stats_.cached_bytes -=
        static_cast<int64_t>(ClassCapacity(static_cast<std::size_t>(oldest - free_.begin())));
  }
}

MemoryStats Allocator::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace lazuli::backend
