// The two ciphers behind random numbers: counters and keys in, random words out.
#pragma once

#include <array>
#include <cstdint>

namespace lazuli::hlo {

// Philox 4x32 with 10 rounds.
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);
// ThreeFry 2x32 with 20 rounds.
std::array<uint32_t, 2> ThreeFry2x32(std::array<uint32_t, 2> counter, std::array<uint32_t, 2> key);

}  // namespace lazuli::hlo
