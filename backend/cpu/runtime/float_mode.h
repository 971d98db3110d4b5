// ScopedFloatMode: floating point as decision 15 wants it on this thread, whatever the caller set,
// until it goes.
#pragma once

#include <cstdint>

namespace lazuli::backend {

// Round to nearest, no traps, subnormals kept or flushed.
class ScopedFloatMode {
 public:
  explicit ScopedFloatMode(bool flush_subnormals);
  ~ScopedFloatMode();
  ScopedFloatMode(const ScopedFloatMode&) = delete;
  ScopedFloatMode& operator=(const ScopedFloatMode&) = delete;

 private:
  uint64_t saved_;
};

}  // namespace lazuli::backend
