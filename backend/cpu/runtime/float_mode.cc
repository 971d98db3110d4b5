#include "backend/cpu/runtime/float_mode.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lazuli::backend {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kDefault = 0x1f80;  // all exceptions masked, round to nearest
constexpr uint32_t kFlush = 0x8040;    // FTZ and DAZ
uint64_t Get() { return _mm_getcsr(); }
void Set(uint64_t mode) { _mm_setcsr(static_cast<uint32_t>(mode)); }
uint64_t Wanted(bool flush) { return flush ? kDefault | kFlush : kDefault; }
#elif defined(__aarch64__)
constexpr uint64_t kFlush = uint64_t{1} << 24;  // FZ
uint64_t Get() {
  uint64_t mode;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
void Set(uint64_t mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }
uint64_t Wanted(bool flush) { return flush ? kFlush : 0; }
#else
uint64_t Get() { return 0; }
void Set(uint64_t) {}
uint64_t Wanted(bool) { return 0; }
#endif

}  // namespace

ScopedFloatMode::ScopedFloatMode(bool flush_subnormals) : saved_(Get()) {
  if (saved_ != Wanted(flush_subnormals)) Set(Wanted(flush_subnormals));
}

ScopedFloatMode::~ScopedFloatMode() {
  if (Get() != saved_) Set(saved_);
}

}  // namespace lazuli::backend
