// Memory for data, the only memory whose absence is an error.
//
// Data is what grows with the user's arrays: buffers, arenas, literals, packed weights, transfers.
// Users meet its limits, and nothing has changed yet where it is asked for, so the call or the run
// that wanted it fails with ResourceExhausted and everything else goes on. All other memory comes
// from operator new, and where that has none left the process ends (EndWithoutMemory).
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>

#include "absl/status/status.h"

namespace lazuli::ir {

inline constexpr std::size_t kDataAlignment = 64;

// Aligned to kDataAlignment; null where the system has none left.
std::byte* AllocateData(std::size_t bytes) noexcept;
void FreeData(std::byte* data) noexcept;
// Whether a ScopedDataFault fails this allocation: for an allocator that need not ask the system.
bool TakeDataFault() noexcept;

// What a Literal throws where its elements get no memory, since literals are made in expressions.
// It becomes a Status in the evaluator, which adds the op and its line, where a run ends, and in the
// public API.
class NoDataMemory final : public std::bad_alloc {
 public:
  explicit NoDataMemory(int64_t bytes);
  const char* what() const noexcept override { return text_; }
  absl::Status status() const;  // ResourceExhausted

 private:
  char text_[80];
};

// Ends the process with one sentence on the standard error: what it was doing when operator new
// failed, and the line of the user's program, 0 if there is none. Called where an std::bad_alloc
// would leave the library. No handler of the whole process is installed: what another library fails
// to allocate is not ours to end.
[[noreturn]] void EndWithoutMemory(std::string_view doing, std::string_view file,
                                   uint32_t line) noexcept;

// For tests: while one lives, allocation `n` (from 0) of data in the process fails, once.
class ScopedDataFault {
 public:
  explicit ScopedDataFault(int64_t n);
  ~ScopedDataFault();
  ScopedDataFault(const ScopedDataFault&) = delete;
  ScopedDataFault& operator=(const ScopedDataFault&) = delete;
  bool happened() const;
};

}  // namespace lazuli::ir
