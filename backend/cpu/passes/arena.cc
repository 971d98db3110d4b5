#include "backend/cpu/passes/arena.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace lazuli::backend {
namespace {

constexpr int64_t kAlignment = 64;

struct Placed {
  int64_t begin, end;
};

// Where `bytes` fit best among the ranges, which are sorted by begin and may overlap.
int64_t BestOffset(const std::vector<Placed>& taken, int64_t bytes) {
  int64_t best = -1, best_gap = std::numeric_limits<int64_t>::max(), at = 0;
  for (const Placed& range : taken) {
    const int64_t gap = range.begin - at;
    if (gap >= bytes && gap < best_gap) {
      best = at;
      best_gap = gap;
    }
    at = std::max(at, range.end);
  }
  return best >= 0 ? best : at;
}

}  // namespace

ArenaPlan PlanArena(absl::Span<const Lifetime> lifetimes) {
  ArenaPlan plan;
  plan.offsets.resize(lifetimes.size());
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return lifetimes[a].bytes > lifetimes[b].bytes;
  });
  std::vector<Placed> taken;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Lifetime& lifetime = lifetimes[order[i]];
    const int64_t bytes = (lifetime.bytes + kAlignment - 1) / kAlignment * kAlignment;
    taken.clear();
    for (std::size_t j = 0; j < i; ++j) {
      const Lifetime& other = lifetimes[order[j]];
      if (other.first > lifetime.last || lifetime.first > other.last) continue;
      const int64_t begin = plan.offsets[order[j]];
      taken.push_back({begin, begin + (other.bytes + kAlignment - 1) / kAlignment * kAlignment});
    }
    std::sort(taken.begin(), taken.end(),
              [](const Placed& a, const Placed& b) { return a.begin < b.begin; });
    plan.offsets[order[i]] = BestOffset(taken, bytes);
    plan.bytes = std::max(plan.bytes, plan.offsets[order[i]] + bytes);
  }
  return plan;
}

}  // namespace lazuli::backend
