// Random generators: a 64-bit seed and a counter that advances on the host whenever a random op is
// recorded.
//
// Results are a function of (seed, offset, shape) by Philox 4x32-10, so they depend neither on
// where a sync falls nor on the device. Thread-safe.
#pragma once

#include <cstdint>

#include "ir/support/fork.h"
#include "ir/support/namespaces.h"

namespace lazuli::lazy {

struct PhiloxState {
  uint64_t seed = 0;
  uint64_t offset = 0;  // in blocks of four 32-bit numbers
};

class Generator {
 public:
  void ManualSeed(uint64_t seed) { Exchange({seed, 0}); }  // also resets the offset
  // A seed that the system draws; returns it.
  uint64_t Seed();
  uint64_t initial_seed() const { return state().seed; }
  PhiloxState state() const;
  PhiloxState Exchange(PhiloxState state);  // returns what it was
  // Reserves `numbers` 32-bit numbers and returns where they start.
  PhiloxState Reserve(int64_t numbers);

 private:
  mutable ir::ForkMutex mutex_;
  PhiloxState state_;
};
// The process' own.
Generator& DefaultGenerator();

inline void ManualSeed(uint64_t seed) { DefaultGenerator().ManualSeed(seed); }
inline PhiloxState ReservePhilox(int64_t numbers) { return DefaultGenerator().Reserve(numbers); }
// 64 bits for a generator on the host; reserves as a random op does.
uint64_t RandomSeed();

}  // namespace lazuli::lazy
