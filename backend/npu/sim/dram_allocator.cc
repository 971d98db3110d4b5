#include "backend/npu/sim/dram_allocator.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "backend/npu/sim/isa.h"
#include "ir/support/check.h"
#include "ir/support/status.h"

namespace lazuli::npu {

DramAllocator::DramAllocator(uint64_t bytes, std::string owner)
    : bytes_(bytes / kDramUnit * kDramUnit), owner_(std::move(owner)) {
  if (bytes_ > 0) free_.emplace(0, bytes_);
}

absl::Status DramAllocator::OutOfMemory(uint64_t bytes, std::string_view name) const {
  constexpr std::size_t kShown = 3;
  uint64_t largest_gap = 0;
  for (const auto& [place, size] : free_) largest_gap = std::max(largest_gap, size);
  std::map<std::string_view, std::pair<uint64_t, int64_t>> by_name;
  for (const auto& [place, block] : blocks_) {
    auto& [sum, count] = by_name[block.name];
    sum += block.bytes;
    ++count;
  }
  std::vector<std::pair<uint64_t, std::string>> largest;
  for (const auto& [owner, use] : by_name)
    largest.emplace_back(use.first, Str(use.second, " x ", owner));
  std::sort(largest.rbegin(), largest.rend());
  std::string holders;
  for (std::size_t i = 0; i < std::min(kShown, largest.size()); ++i)
    holders +=
        Str(i == 0 ? "; it holds " : ", ", largest[i].first, " bytes of ", largest[i].second);
  return ResourceExhausted(owner_, ": out of memory: ", bytes, " bytes for ", name,
                           " do not fit the simulated DRAM of ", bytes_, " bytes, of which ",
                           in_use_, " are in use and ", largest_gap, " are free in one piece",
                           holders);
}

absl::StatusOr<uint64_t> DramAllocator::Allocate(uint64_t bytes, std::string_view name) {
  if (bytes > bytes_) return OutOfMemory(bytes, name);
  const uint64_t size = std::max<uint64_t>(kDramUnit, RoundedToDramUnit(bytes));
  const auto gap = std::find_if(free_.begin(), free_.end(),
                                [size](const auto& piece) { return piece.second >= size; });
  if (gap == free_.end()) return OutOfMemory(bytes, name);
  const auto [place, there] = *gap;
  free_.erase(gap);
  if (there > size) free_.emplace(place + size, there - size);
  blocks_.emplace(place, AllocatedBlock{size, std::string(name)});
  in_use_ += size;
  peak_ = std::max(peak_, in_use_);
  return place;
}

void DramAllocator::Free(uint64_t place) {
  const auto block = blocks_.find(place);
  LAZULI_CHECK(block != blocks_.end(), "what is freed was allocated");
  uint64_t size = block->second.bytes;
  blocks_.erase(block);
  in_use_ -= size;
  auto next = free_.upper_bound(place);
  if (next != free_.end() && place + size == next->first) {
    size += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == place) {
      before->second += size;
      return;
    }
  }
  free_.emplace(place, size);
}

}  // namespace lazuli::npu
