// The default random generator: a 64-bit seed and a counter that advances on the host whenever a
// random op is recorded.
//
// Results are a function of (seed, offset, shape) by Philox 4x32-10, so they depend neither on
// where a sync falls nor on the device. Process-wide and thread-safe.
#pragma once

#include <cstdint>

#include "ir/support/namespaces.h"

namespace lazuli::lazy {

void ManualSeed(uint64_t seed);  // also resets the offset

struct PhiloxState {
  uint64_t seed = 0;
  uint64_t offset = 0;  // in blocks of four 32-bit numbers
};
// Reserves `numbers` 32-bit numbers and returns where they start.
PhiloxState ReservePhilox(int64_t numbers);
// 64 bits for a generator on the host; reserves as a random op does.
uint64_t RandomSeed();

}  // namespace lazuli::lazy
