// Random numbers. rng-bit-generator gives XLA's bits: the Philox 4x32-10 and ThreeFry 2x32-20
// ciphers (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3") of a counter, whose state
// is (key, counter[, high counter]) in 64-bit words.

#include <array>
#include <atomic>
#include <cstring>

#include "ir/evaluator/internal.h"
#include "ir/evaluator/random_bits.h"
#include "ir/recipes/recipes.h"
#include "ir/support/runtime.h"

namespace lazuli::hlo {
namespace {

uint32_t Low(uint64_t x) { return static_cast<uint32_t>(x); }
uint32_t High(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

// Element `index` of an array of elements of `width` bytes becomes the low bytes of `bits`.
void Store(std::byte* to, int64_t index, int width, uint64_t bits) {
  std::memcpy(to + index * width, &bits, static_cast<std::size_t>(width));
}

// Four words a counter; elements take them in order, 64-bit ones two each. A state of two words
// uses the key as the high half of the counter.
Literal Philox(std::vector<uint64_t>& state, const Shape& shape) {
  const int width = ByteWidth(shape.dtype());
  const int per_counter = width == 8 ? 2 : 4;
  const uint64_t key = state[0];
  uint64_t low = state[1], high = state.size() > 2 ? state[2] : key;
  Literal result = Literal::Uninitialized(shape);
  const int64_t count = shape.num_elements();
  for (int64_t i = 0; i < count; i += per_counter) {
    const auto words =
        Philox4x32({Low(low), High(low), Low(high), High(high)}, {Low(key), High(key)});
    for (int k = 0; k < per_counter && i + k < count; ++k) {
      const auto w = static_cast<std::size_t>(k);
      const uint64_t bits =
          width == 8 ? words[2 * w] | uint64_t{words[2 * w + 1]} << 32 : uint64_t{words[w]};
      Store(result.mutable_raw(), i + k, width, bits);
    }
    if (++low == 0) ++high;
  }
  state[1] = low;
  if (state.size() > 2) state[2] = high;
  return result;
}

// Two words a counter. They are neighbours along one dimension: the first even one, else the
// largest. A 64-bit element takes both.
Literal ThreeFry(std::vector<uint64_t>& state, const Shape& shape) {
  const int width = ByteWidth(shape.dtype());
  Literal result = Literal::Uninitialized(shape);
  const std::array<uint32_t, 2> key{Low(state[0]), High(state[0])};
  auto next = [&] {
    const auto words = ThreeFry2x32({Low(state[1]), High(state[1])}, key);
    ++state[1];
    return words;
  };
  if (width == 8) {
    for (int64_t i = 0; i < shape.num_elements(); ++i) {
      const auto words = next();
      Store(result.mutable_raw(), i, width, words[0] | uint64_t{words[1]} << 32);
    }
    return result;
  }
  std::size_t split = 0;
  const absl::Span<const int64_t> dims = shape.dims();
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] % 2 == 0) {
      split = d;
      break;
    }
    if (dims[d] > dims[split]) split = d;
  }
  int64_t outer = 1, size = 1, inner = 1;
  for (std::size_t d = 0; d < dims.size(); ++d)
    (d < split ? outer : d == split ? size : inner) *= dims[d];
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t pair = 0; pair < (size + 1) / 2; ++pair) {
      for (int64_t i = 0; i < inner; ++i) {
        const auto words = next();
        const int64_t index = (o * size + 2 * pair) * inner + i;
        Store(result.mutable_raw(), index, width, words[0]);
        if (2 * pair + 1 < size) Store(result.mutable_raw(), index + inner, width, words[1]);
      }
    }
  }
  return result;
}

// The runtime's. `rng` has no state that a program could see: every run draws new numbers.
struct RngState {
  std::atomic<uint64_t> calls{0}, state{0};
  static RngState& Get() { return ir::Runtime::Get().Of<RngState>(); }
};

// Uniform in [0, 1), 53 bits.
double Uniform(uint64_t call, uint64_t index) {
  const auto words = Philox4x32({Low(index), High(index), Low(call), High(call)}, {0x5eed, 0});
  return static_cast<double>((words[0] | uint64_t{words[1]} << 32) >> 11) * 0x1p-53;
}

}  // namespace

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> c, std::array<uint32_t, 2> key) {
  uint32_t words[4][1] = {{c[0]}, {c[1]}, {c[2]}, {c[3]}};
  Philox4x32(words, key);
  return {words[0][0], words[1][0], words[2][0], words[3][0]};
}

std::array<uint32_t, 2> ThreeFry2x32(std::array<uint32_t, 2> x, std::array<uint32_t, 2> key) {
  constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const uint32_t keys[3] = {key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDA};
  x = {x[0] + keys[0], x[1] + keys[1]};
  for (uint32_t group = 0; group < 5; ++group) {
    for (int rotation : kRotations[group % 2]) {
      x[0] += x[1];
      x[1] = std::rotl(x[1], rotation) ^ x[0];
    }
    x[0] += keys[(group + 1) % 3];
    x[1] += keys[(group + 2) % 3] + group + 1;
  }
  return x;
}

absl::StatusOr<Literal> EvaluateRngBitGenerator(const Instruction& instruction, Operands operands) {
  const Literal& old_state = *operands[0];
  const Shape& shape = instruction.shape().tuple()[1];
  const RngAlgorithm algorithm = instruction.attrs_as<RngBitGeneratorAttrs>().algorithm;
  if (old_state.shape().dtype() != DType::kU64 || old_state.shape().num_elements() < 2 ||
      old_state.shape().num_elements() > 3) {
    return Unimplemented("rng-bit-generator with a state of ", old_state.shape(),
                         ": it is u64[2] or u64[3]");
  }
  const auto words = old_state.data<uint64_t>();
  std::vector<uint64_t> state(words.begin(), words.end());
  Literal bits =
      algorithm == RngAlgorithm::kThreeFry ? ThreeFry(state, shape) : Philox(state, shape);
  Literal new_state = Literal::FromValues<uint64_t>(old_state.shape().dims(), state);
  return Literal::Tuple({std::move(new_state), std::move(bits)});
}

// Uniform in [a, b), or normal with mean a and deviation b.
absl::StatusOr<Literal> EvaluateRng(const Instruction& instruction, Operands operands) {
  const uint64_t call = RngState::Get().calls.fetch_add(1);
  const double a = operands[0]->AsDouble(0), b = operands[1]->AsDouble(0);
  const bool normal = instruction.attrs_as<RngAttrs>().distribution == RngDistribution::kNormal;
  Literal values = Literal::Uninitialized(Shape(DType::kF64, instruction.shape().dims()));
  uint64_t index = 0;
  for (double& value : values.mutable_data<double>()) {
    const double u = Uniform(call, index);
    if (normal) {
      const double v = Uniform(call, index + (uint64_t{1} << 63));
      const double radius = std::sqrt(-2 * recipes::Log(1 - u));
      value = a + b * radius * recipes::Cos(6.283185307179586 * v);
    } else {
      value = a + (b - a) * u;
      if (!IsFloat(instruction.shape().dtype())) value = std::floor(value);
    }
    ++index;
  }
  return values.Converted(instruction.shape().dtype());
}

absl::StatusOr<Literal> EvaluateRngGetAndUpdateState(const Instruction& instruction) {
  const auto delta = static_cast<uint64_t>(instruction.attrs_as<RngStateAttrs>().delta);
  return Literal::FromValues<uint64_t>({2}, {RngState::Get().state.fetch_add(delta), 0});
}

}  // namespace lazuli::hlo
