// Waiting for a moment without giving up the processor.
#pragma once

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "ir/support/namespaces.h"

namespace lazuli::ir {

// What sleeping and being woken takes, some ten microseconds: a wait that may be shorter looks this
// often before it sleeps.
inline constexpr int kWakeSpins = 1500;

// Looks at a condition of atomics again and again; whether it came true within `spins` looks.
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
