// Waiting for a moment without giving up the processor.
#pragma once

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "ir/support/namespaces.h"

namespace lazuli::ir {

// How often a wait looks before it sleeps. So many looks take as long as sleeping and being woken
// does, some ten microseconds.
inline constexpr int kWakeSpins = 1500;

// Looks at a condition of atomics again and again. Returns whether it came true within `spins` looks.
template <class Condition>
bool SpinUntil(Condition&& condition, int spins = kWakeSpins) {
  for (int i = 0; i < spins; ++i) {
    if (condition()) return true;
#if defined(__SSE2__)
    _mm_pause();
#endif
  }
  return false;
}

}  // namespace lazuli::ir
