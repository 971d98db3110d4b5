#include "backend/cpu/runtime/philox_thunk.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ir/evaluator/random_bits.h"
#include "ir/support/parallel_for.h"

namespace lazuli::cpu {
namespace {

// Counters worth a thread.
constexpr int64_t kGrain = 2048;

struct Counter128 {
  uint64_t low, high;
  Counter128 operator+(uint64_t n) const { return {low + n, high + (low + n < low ? 1 : 0)}; }
};

uint32_t Low(uint64_t x) { return static_cast<uint32_t>(x); }
uint32_t High(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

// Counters that go through the rounds together.
constexpr int64_t kTogether = 16;

// The four words each of `groups` times kTogether counters.
[[gnu::always_inline]] inline void Fill(Counter128 first, uint64_t key, int64_t groups,
                                        uint32_t* to) {
  constexpr auto kCounters = static_cast<std::size_t>(kTogether);
  for (int64_t g = 0; g < groups; ++g, to += 4 * kTogether) {
    uint32_t words[4][kCounters];
    for (std::size_t i = 0; i < kCounters; ++i) {
      const Counter128 c = first + (static_cast<uint64_t>(g * kTogether) + i);
      words[0][i] = Low(c.low), words[1][i] = High(c.low);
      words[2][i] = Low(c.high), words[3][i] = High(c.high);
    }
    hlo::Philox4x32(words, {Low(key), High(key)});
    for (std::size_t i = 0; i < kCounters; ++i) {
      for (std::size_t w = 0; w < 4; ++w) to[4 * i + w] = words[w][i];
    }
  }
}

using FillFunction = void (*)(Counter128, uint64_t, int64_t, uint32_t*);

void FillAnywhere(Counter128 first, uint64_t key, int64_t groups, uint32_t* to) {
  Fill(first, key, groups, to);
}
#if defined(__x86_64__)
[[gnu::target("avx2")]] void FillAvx2(Counter128 first, uint64_t key, int64_t groups,
                                      uint32_t* to) {
  Fill(first, key, groups, to);
}
[[gnu::target("avx512f,avx512dq,avx512vl")]] void FillAvx512(Counter128 first, uint64_t key,
                                                             int64_t groups, uint32_t* to) {
  Fill(first, key, groups, to);
}
FillFunction BestFill() {
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) return FillAvx512;
  return __builtin_cpu_supports("avx2") ? FillAvx2 : FillAnywhere;
}
#else
FillFunction BestFill() { return FillAnywhere; }
#endif

struct PhiloxSpec {
  int64_t state_words = 0, width = 0, count = 0;
  BufferId state = 0, new_state = 0, bits = 0;
  LAZULI_ATTRS(state_words, width, count, state, new_state, bits);
};

class PhiloxThunk final : public SpecThunk<PhiloxSpec> {
 public:
  using SpecThunk::SpecThunk;

  absl::Status Execute(const RunBuffers& run) const override {
    const uint64_t* state = run.at<const uint64_t>(spec_.state);
    const uint64_t key = state[0];
    const Counter128 start{state[1], spec_.state_words > 2 ? state[2] : key};
    std::byte* to = run.at(spec_.bits);
    const int64_t per_counter = spec_.width == 8 ? 2 : 4;
    const int64_t counters = (spec_.count + per_counter - 1) / per_counter;
    const int64_t bytes = spec_.count * spec_.width;
    ParallelFor(counters, kGrain, [&](int64_t begin, int64_t end) {
      // Words of 32 bits that all have a place go there at once.
      const int64_t whole = spec_.width < 4 ? 0 : (std::min(end, bytes / 16) - begin) / kTogether;
      fill_(start + static_cast<uint64_t>(begin), key, whole,
            reinterpret_cast<uint32_t*>(to + begin * 16));
      for (int64_t i = begin + whole * kTogether; i < end; ++i) {
        const Counter128 c = start + static_cast<uint64_t>(i);
        const auto words = hlo::Philox4x32({Low(c.low), High(c.low), Low(c.high), High(c.high)},
                                           {Low(key), High(key)});
        Store(words, to + i * per_counter * spec_.width,
              std::min(per_counter * spec_.width, bytes - i * per_counter * spec_.width));
      }
    });
    const Counter128 after = start + static_cast<uint64_t>(counters);
    const std::array<uint64_t, 3> next{key, after.low, after.high};
    std::memcpy(run.at(spec_.new_state), next.data(),
                static_cast<std::size_t>(spec_.state_words) * sizeof(uint64_t));
    return absl::OkStatus();
  }

 private:
  // One word an element, or both halves of a 64-bit one; narrow elements take the low bytes of a
  // word each.
  void Store(const std::array<uint32_t, 4>& words, std::byte* to, int64_t bytes) const {
    if (spec_.width >= 4) {
      std::memcpy(to, words.data(), static_cast<std::size_t>(bytes));
      return;
    }
    for (int64_t k = 0; k * spec_.width < bytes; ++k) {
      std::memcpy(to + k * spec_.width, &words[static_cast<std::size_t>(k)],
                  static_cast<std::size_t>(spec_.width));
    }
  }

  FillFunction fill_ = BestFill();
};

}  // namespace

ThunkOrReason MakePhiloxThunk(const hlo::Instruction& instruction, BufferId state,
                              BufferId new_state, BufferId bits) {
  const Shape& shape = instruction.operand(0)->shape();
  if (instruction.attrs_as<hlo::RngBitGeneratorAttrs>().algorithm == hlo::RngAlgorithm::kThreeFry)
    return "its algorithm is ThreeFry";
  if (shape.dtype() != DType::kU64 || shape.num_elements() < 2 || shape.num_elements() > 3)
    return "its state is not two or three numbers of u64";
  const Shape& random = instruction.shape().tuple()[1];
  return std::make_unique<PhiloxThunk>(
      ThunkInfo::Of("philox", instruction),
      std::vector<BufferUse>{
          {.buffer = state}, {.buffer = new_state, .write = true}, {.buffer = bits, .write = true}},
      PhiloxSpec{.state_words = shape.num_elements(),
                 .width = ByteWidth(random.dtype()),
                 .count = random.num_elements(),
                 .state = state,
                 .new_state = new_state,
                 .bits = bits});
}

ThunkKind PhiloxThunkKind() { return ThunkKind::Of<PhiloxThunk>("philox"); }

}  // namespace lazuli::cpu
