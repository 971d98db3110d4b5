#include "lazy/tensor/random.h"

#include <mutex>

#include "ir/support/fork.h"
#include "ir/support/runtime.h"

namespace lazuli::lazy {
namespace {

struct Generator {
  static Generator& Get() { return ir::Runtime::Get().Of<Generator>(); }
  ir::ForkMutex mutex;
  PhiloxState state;
};

}  // namespace

void ManualSeed(uint64_t seed) {
  Generator& generator = Generator::Get();
  std::lock_guard lock(generator.mutex);
  generator.state = {seed, 0};
}

PhiloxState ReservePhilox(int64_t numbers) {
  Generator& generator = Generator::Get();
  std::lock_guard lock(generator.mutex);
  const PhiloxState reserved = generator.state;
  generator.state.offset += static_cast<uint64_t>(numbers + 3) / 4;
  return reserved;
}

uint64_t RandomSeed() {
  const PhiloxState state = ReservePhilox(2);
  // SplitMix64's mixer: neighbouring offsets give unrelated seeds.
  uint64_t z = state.seed + (state.offset + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace lazuli::lazy
