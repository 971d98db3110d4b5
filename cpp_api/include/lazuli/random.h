// The process' own generator of random numbers. What is drawn is in ops.h.
#pragma once

#include <cstdint>

#include "lazuli/generator.h"
#include "lazuli/ops.h"

namespace lazuli {

LAZULI_API std::uint64_t initial_seed();
LAZULI_API std::uint64_t seed();
LAZULI_API Tensor get_rng_state();
LAZULI_API void set_rng_state(const Tensor& state);

}  // namespace lazuli
