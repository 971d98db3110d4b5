// The order in which an epoch visits samples.
#pragma once

#include <cstdint>
#include <vector>

namespace lazuli::data {

// 0 ... size - 1 in an order that depends on the seed only, on every machine.
std::vector<std::int64_t> Permutation(std::int64_t size, std::uint64_t seed);

// A seed for the n-th of a series.
std::uint64_t MixSeed(std::uint64_t seed, std::uint64_t n);

}  // namespace lazuli::data
