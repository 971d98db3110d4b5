// The two ciphers behind random numbers: counters and keys in, random words out.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace lazuli::hlo {

// Philox 4x32 with 10 rounds, for as many counters at once: by word, then counter, so that the
// compiler makes vectors of them.
template <std::size_t kCounters>
[[gnu::always_inline]] inline void Philox4x32(uint32_t (&c)[4][kCounters],
                                              std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    for (std::size_t i = 0; i < kCounters; ++i) {
      const uint64_t p0 = uint64_t{0xD2511F53} * c[0][i], p1 = uint64_t{0xCD9E8D57} * c[2][i];
      c[0][i] = static_cast<uint32_t>(p1 >> 32) ^ c[1][i] ^ key[0];
      c[1][i] = static_cast<uint32_t>(p1);
      c[2][i] = static_cast<uint32_t>(p0 >> 32) ^ c[3][i] ^ key[1];
      c[3][i] = static_cast<uint32_t>(p0);
    }
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
}
// For one.
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);
// ThreeFry 2x32 with 20 rounds.
std::array<uint32_t, 2> ThreeFry2x32(std::array<uint32_t, 2> counter, std::array<uint32_t, 2> key);

}  // namespace lazuli::hlo
