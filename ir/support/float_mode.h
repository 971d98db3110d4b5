// ScopedFloatMode: while one lives, this thread computes in the library's floating-point mode, and
// after that in the mode the caller had set.
//
// Values must not depend on the thread that asks for them. So whatever parses, folds, evaluates,
// compiles or runs opens one. If the thread is in the right mode already, nothing is written and it
// costs a few nanoseconds.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "ir/support/namespaces.h"

namespace lazuli::ir {

// Round to nearest, no traps, subnormals kept or flushed.
class ScopedFloatMode {
 public:
  explicit ScopedFloatMode(bool flush_subnormals = false)
      : saved_(Get()), changed_(((saved_ ^ Wanted(flush_subnormals)) & kMode) != 0) {
    if (changed_) [[unlikely]]
      Set(Wanted(flush_subnormals));
  }
  ~ScopedFloatMode() {
    if (changed_) [[unlikely]]
      Set(saved_);
  }
  ScopedFloatMode(const ScopedFloatMode&) = delete;
  ScopedFloatMode& operator=(const ScopedFloatMode&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr uint64_t kDefault = 0x1f80;  // all exceptions masked, round to nearest
  static constexpr uint64_t kFlush = 0x8040;    // FTZ and DAZ
  static constexpr uint64_t kMode = 0xffc0;     // all but the flags that exceptions leave behind
  static uint64_t Get() { return _mm_getcsr(); }
  static void Set(uint64_t mode) { _mm_setcsr(static_cast<uint32_t>(mode)); }
#elif defined(__aarch64__)
  static constexpr uint64_t kDefault = 0;
  static constexpr uint64_t kFlush = uint64_t{1} << 24;  // FZ
  static constexpr uint64_t kMode = ~uint64_t{0};
  static uint64_t Get() {
    uint64_t mode;
    asm volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
  }
  static void Set(uint64_t mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }
#else
  static constexpr uint64_t kDefault = 0, kFlush = 0, kMode = 0;
  static uint64_t Get() { return 0; }
  static void Set(uint64_t) {}
#endif
  static uint64_t Wanted(bool flush) { return flush ? kDefault | kFlush : kDefault; }

  uint64_t saved_;
  bool changed_;
};

}  // namespace lazuli::ir
