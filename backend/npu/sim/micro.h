// What a micro-operation of the vector unit computes, for a block of elements at once.
#pragma once

#include <array>
#include <cstdint>

#include "backend/npu/sim/isa.h"

namespace lazuli::npu {

inline constexpr int64_t kBlock = 256;  // no result depends on it
using Lanes = std::array<uint32_t, kBlock>;

// d = op of the first n elements. All but lit and idx, which compute nothing.
void Compute(const MicroInstruction& micro, const Lanes& a, const Lanes& b, const Lanes& c,
             Lanes& d, int64_t n);

}  // namespace lazuli::npu
