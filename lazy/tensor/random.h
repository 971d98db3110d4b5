// Random generators: a 64-bit seed and a counter that advances on the host whenever a random op is
// recorded.
//
// Results are a function of (seed, offset, shape) by Philox 4x32-10, so they depend neither on
// where a sync falls nor on the device. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "ir/support/fork.h"
#include "ir/support/intrusive_ptr.h"
#include "ir/support/namespaces.h"

namespace lazuli::lazy {

struct PhiloxState {
  uint64_t seed = 0;
  uint64_t offset = 0;  // in blocks of four 32-bit numbers
  bool operator==(const PhiloxState&) const = default;
};

// Where a generator is. It outlives the generator while a graph may give numbers back.
class GeneratorState : public ir::RefCounted<GeneratorState> {
 public:
  PhiloxState Get() const;
  PhiloxState Exchange(PhiloxState state);  // returns what it was
  // Reserves `numbers` 32-bit numbers and returns where they start.
  PhiloxState Reserve(int64_t numbers);
  // Sets the state if it is `from`.
  void ReplaceIf(PhiloxState from, PhiloxState state);

 private:
  friend class Replay;
  mutable ir::ForkMutex mutex_;
  PhiloxState state_;
  std::atomic<std::thread::id> replayed_by_{};  // no thread: none does
};
using GeneratorStatePtr = ir::IntrusivePtr<GeneratorState>;

// Where the numbers begin that follow `numbers` of a state's.
inline PhiloxState After(PhiloxState state, int64_t numbers) {
  return {state.seed, state.offset + static_cast<uint64_t>(numbers + 3) / 4};
}

class Generator {
 public:
  void ManualSeed(uint64_t seed) { Exchange({seed, 0}); }  // also resets the offset
  // A seed that the system draws; returns it.
  uint64_t Seed();
  uint64_t initial_seed() const { return state().seed; }
  PhiloxState state() const { return state_->Get(); }
  // Returns where it was. What is recorded to be run again cannot do this.
  PhiloxState Exchange(PhiloxState state);
  PhiloxState Reserve(int64_t numbers) { return state_->Reserve(numbers); }
  const GeneratorStatePtr& shared_state() const { return state_; }

 private:
  GeneratorStatePtr state_ = ir::MakeIntrusive<GeneratorState>();
};
// The process' own.
Generator& DefaultGenerator();

// While it lives, what this thread draws of the generator are numbers from `state` on that were drawn
// before. Afterwards the generator is where it was, and no graph gives these numbers back.
class Replay {
 public:
  Replay(Generator& generator, PhiloxState state)
      : generator_(generator),
        now_(generator.shared_state()->Exchange(state)),
        outer_(ReplayedBy(generator).exchange(std::this_thread::get_id())) {}
  ~Replay() {
    ReplayedBy(generator_) = outer_;
    generator_.shared_state()->Exchange(now_);
  }
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;
  static bool Is(const Generator& generator) {
    return ReplayedBy(generator) == std::this_thread::get_id();
  }

 private:
  static std::atomic<std::thread::id>& ReplayedBy(const Generator& generator) {
    return generator.shared_state()->replayed_by_;
  }
  Generator& generator_;
  const PhiloxState now_;
  const std::thread::id outer_;
};

inline void ManualSeed(uint64_t seed) { DefaultGenerator().ManualSeed(seed); }
inline PhiloxState ReservePhilox(int64_t numbers) { return DefaultGenerator().Reserve(numbers); }
// 64 bits for a generator on the host; reserves as a random op does.
uint64_t RandomSeed();

}  // namespace lazuli::lazy
