#include "ir/support/data_memory.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "ir/support/status.h"

namespace lazuli::ir {
namespace {

std::atomic<int64_t> until_fault{-1};  // allocations that still succeed; negative: all do

}  // namespace

bool TakeDataFault() noexcept {
  return until_fault.load(std::memory_order_relaxed) >= 0 && until_fault.fetch_sub(1) == 0;
}

std::byte* AllocateData(std::size_t bytes) noexcept {
  if (TakeDataFault()) [[unlikely]]
    return nullptr;
  if (bytes > PTRDIFF_MAX) return nullptr;  // which sanitizers end the process for
  const std::size_t rounded =
      (std::max<std::size_t>(bytes, 1) + kDataAlignment - 1) & ~(kDataAlignment - 1);
  return static_cast<std::byte*>(std::aligned_alloc(kDataAlignment, rounded));
}

void FreeData(std::byte* data) noexcept { std::free(data); }

NoDataMemory::NoDataMemory(int64_t bytes) {
  std::snprintf(text_, sizeof text_, "out of memory: an array of %lld bytes could not be allocated",
                static_cast<long long>(bytes));
}

absl::Status NoDataMemory::status() const { return ResourceExhausted(what()); }

void EndWithoutMemory(std::string_view doing, std::string_view file, uint32_t line) noexcept {
  const auto length = [](std::string_view text) { return static_cast<int>(text.size()); };
  file.remove_prefix(file.rfind('/') + 1);
  std::fprintf(stderr, "lazuli: out of memory %.*s", length(doing), doing.data());
  if (line > 0) std::fprintf(stderr, " (%.*s:%u)", length(file), file.data(), line);
  std::fprintf(stderr, "; the process ends\n");
  std::abort();
}

ScopedDataFault::ScopedDataFault(int64_t n) { until_fault = n; }
ScopedDataFault::~ScopedDataFault() { until_fault = -1; }
bool ScopedDataFault::happened() const { return until_fault.load() < 0; }

}  // namespace lazuli::ir
