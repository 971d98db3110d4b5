// Hashing for cache keys: fast, stable within a process, not cryptographic. Equality always
// decides; a hash only finds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ir/support/namespaces.h"

namespace lazuli::ir {

constexpr uint64_t Mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ull + (hash << 6) + (hash >> 2);
  return hash * 0xff51afd7ed558ccdull;
}

// Hash of `size` bytes, eight at a time with a 128-bit multiply per word (the idea of wyhash).
inline uint64_t HashBytes(const void* data, std::size_t size, uint64_t seed = 0) {
  const auto* p = static_cast<const unsigned char*>(data);
  uint64_t hash = seed ^ (0xa0761d6478bd642full + size);
  auto step = [&hash](uint64_t word) {
    const auto product = static_cast<unsigned __int128>(hash ^ word) * 0xe7037ed1a0b428dbull;
    hash = static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64) ^
           0x8ebc6af09c88c6e3ull;
  };
  for (; size >= 8; p += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    step(word);
  }
  if (size > 0) {
    uint64_t word = 0;
    std::memcpy(&word, p, size);
    step(word);
  }
  return Mix(hash, hash >> 29);
}

}  // namespace lazuli::ir
