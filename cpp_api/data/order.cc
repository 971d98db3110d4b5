#include "cpp_api/data/order.h"

#include <numeric>
#include <utility>

namespace lazuli::data {
namespace {

// SplitMix64 (Steele, Lea, Flood, 2014). std::shuffle and the distributions of <random> differ
// between libraries.
class SplitMix {
 public:
  explicit SplitMix(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // Uniform in [0, bound): numbers below 2^64 mod bound would favour some results.
  std::uint64_t Below(std::uint64_t bound) {
    const std::uint64_t reject = -bound % bound;
    std::uint64_t number = Next();
    while (number < reject) number = Next();
    return number % bound;
  }

 private:
  std::uint64_t state_;
};

}  // namespace

std::vector<std::int64_t> Permutation(std::int64_t size, std::uint64_t seed) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  SplitMix random(seed);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
  return order;
}

std::uint64_t MixSeed(std::uint64_t seed, std::uint64_t n) {
  return SplitMix(SplitMix(seed).Next() ^ n).Next();
}

}  // namespace lazuli::data
