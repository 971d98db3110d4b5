#include "lazy/tensor/random.h"

#include <mutex>
#include <random>
#include <utility>

#include "ir/support/runtime.h"
#include "lazy/tensor/watch.h"

namespace lazuli::lazy {

Generator& DefaultGenerator() { return ir::Runtime::Get().Of<Generator>(); }

uint64_t Generator::Seed() {
  std::random_device device;
  const uint64_t high = device();
  const uint64_t seed = high << 32 | device();
  ManualSeed(seed);
  return seed;
}

PhiloxState GeneratorState::Get() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

PhiloxState Generator::Exchange(PhiloxState state) {
  if (Watch* const watch = Watch::Current()) [[unlikely]]
    watch->Refuse("sets the state of a random generator");
  return state_->Exchange(state);
}

PhiloxState GeneratorState::Exchange(PhiloxState state) {
  const std::lock_guard lock(mutex_);
  return std::exchange(state_, state);
}

PhiloxState GeneratorState::Reserve(int64_t numbers) {
  const std::lock_guard lock(mutex_);
  return std::exchange(state_, After(state_, numbers));
}

void GeneratorState::ReplaceIf(PhiloxState from, PhiloxState state) {
  const std::lock_guard lock(mutex_);
  if (state_ == from) state_ = state;
}

uint64_t RandomSeed() {
  if (Watch* const watch = Watch::Current()) [[unlikely]]
    watch->Refuse("draws a number for the host");
  const PhiloxState state = ReservePhilox(2);
  // SplitMix64's mixer: neighbouring offsets give unrelated seeds.
  uint64_t z = state.seed + (state.offset + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace lazuli::lazy
