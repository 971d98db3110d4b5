// Memory that may not be touched, for AddressSanitizer: what lies between buffers, behind them in a
// block of the allocator, and in blocks that nobody has. Nothing in builds without it.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace lazuli::backend {

#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kGuardsBuffers = true;
inline void Forbid(const std::byte* data, std::size_t bytes) {
  __asan_poison_memory_region(data, bytes);
}
inline void Allow(const std::byte* data, std::size_t bytes) {
  __asan_unpoison_memory_region(data, bytes);
}
#else
inline constexpr bool kGuardsBuffers = false;
inline void Forbid(const std::byte*, std::size_t) {}
inline void Allow(const std::byte*, std::size_t) {}
#endif

}  // namespace lazuli::backend
