// The arithmetic of the NPU to the last bit: floats of 16 bits, the matrix unit's products and its
// results.
//
// Everything rounds to nearest even, subnormals stay, a NaN that is made is 7fc00000. docs/npu.md
// states the order of every sum; the kernels here keep it and differ in speed alone.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backend/npu/sim/config.h"
#include "backend/npu/sim/types.h"

namespace lazuli::npu {

// Memory as a value, aligned or not.
template <class T>
T Loaded(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <class T>
void Stored(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}
// An element's bits, the rest 0.
inline uint64_t LoadBits(Type type, const std::byte* at) {
  uint64_t bits = 0;
  std::memcpy(&bits, at, static_cast<std::size_t>(TypeBytes(type)));
  return bits;
}

constexpr uint16_t ToBf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (value != value) return 0x7fc0;
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
constexpr float FromBf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}
constexpr float RoundToBf16(float value) { return FromBf16(ToBf16(value)); }

constexpr float kCanonicalNan = std::bit_cast<float>(0x7fc00000u);
constexpr float Canonical(float value) { return value == value ? value : kCanonicalNan; }

// One tile: acc[m][c] (+)= sum over r of a[m][r] * w[r][c], of n columns each; `a` has k and `w` n
// elements a row, and rows of acc are acc_stride apart. The sum of the tile starts from +0 and goes
// up in r by fma; it is added to acc (or replaces it) by one addition. Elements are f32 (bf16 is
// widened before).
void MultiplyTile(const float* a, const float* w, float* acc, int64_t m, int64_t k, int64_t n,
                  int64_t acc_stride, bool accumulate);
// The same of integers, modulo 2^32.
void MultiplyTile(const int16_t* a, const int16_t* w, int32_t* acc, int64_t m, int64_t k, int64_t n,
                  int64_t acc_stride, bool accumulate);

// The parts that x1, x3 and x6 multiply: the value rounded to bf16, then what that leaves, and so
// on.
void SplitBf16(const float* values, int64_t count, int parts, float* const* out);
// Pairs (part of a, part of w) in the order of the passes, least products first: each pass is a
// tile sum of its own that is added to the accumulator.
struct PartPair {
  int a, w;
};
struct Passes {
  int count;
  PartPair pair[6];
};
constexpr Passes PassesOf(F32Mode mode) {
  switch (mode) {
    case F32Mode::kX3:
      return {3, {{1, 0}, {0, 1}, {0, 0}}};
    case F32Mode::kX6:
      return {6, {{2, 0}, {1, 1}, {0, 2}, {1, 0}, {0, 1}, {0, 0}}};
    default:
      return {1, {{0, 0}}};
  }
}

}  // namespace lazuli::npu
