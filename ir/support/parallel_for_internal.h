// What both implementations of ParallelFor share: how a loop is cut, and what a worker takes over
// from its caller.
#pragma once

#include <algorithm>
#include <cstdint>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "absl/functional/function_ref.h"

#include "ir/support/namespaces.h"

namespace lazuli::ir::internal {

// Contiguous chunks of equal size (but the last), at most one a thread.
struct Chunks {
  int64_t n, size, count;
  Chunks(int64_t n, int64_t grain, int64_t threads)
      : n(n),
        size(std::max({grain, (n + threads - 1) / threads, int64_t{1}})),
        count((n + size - 1) / size) {}
  int64_t begin(int64_t i) const { return i * size; }
  int64_t end(int64_t i) const { return std::min(n, (i + 1) * size); }
  // Chunk after chunk, so that what a body does for each is the same as in a region.
  void RunInline(absl::FunctionRef<void(int64_t, int64_t)> body) const {
    for (int64_t i = 0; i < count; ++i) body(begin(i), end(i));
  }
};

// The floating-point mode (rounding, flushing of subnormals) of the thread that opens a region
// holds in all of it.
class FloatMode {
 public:
#if defined(__SSE2__)
  static FloatMode Current() { return FloatMode(_mm_getcsr()); }
  // Exception flags are no mode: they stay with the thread.
  void Apply() const {
    if (((_mm_getcsr() ^ mode_) & ~kFlags) != 0) _mm_setcsr(mode_ & ~kFlags);
  }

 private:
  static constexpr unsigned kFlags = 0x3f;
  explicit FloatMode(unsigned mode) : mode_(mode) {}
  unsigned mode_;
#else
  static FloatMode Current() { return {}; }
  void Apply() const {}
#endif
};

}  // namespace lazuli::ir::internal
