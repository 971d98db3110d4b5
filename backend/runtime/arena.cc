#include "backend/runtime/arena.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace lazuli::backend {
namespace {

constexpr int64_t kAlignment = 64;

// Placing more by size would take too long: each looks at all placed before it.
constexpr std::size_t kMaxBySize = 2048;

int64_t Aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

struct PlacedRange {
  int64_t begin, end;
};

// Where `bytes` fit best among the ranges, which are sorted by begin and may overlap.
int64_t BestOffset(const std::vector<PlacedRange>& taken, int64_t bytes) {
  int64_t best = -1, best_gap = std::numeric_limits<int64_t>::max(), at = 0;
  for (const PlacedRange& range : taken) {
    const int64_t gap = range.begin - at;
    if (gap >= bytes && gap < best_gap) {
      best = at;
      best_gap = gap;
    }
    at = std::max(at, range.end);
  }
  return best >= 0 ? best : at;
}

// Largest first: each takes the tightest gap among those placed that overlap with it in time.
ArenaPlan PlanBySize(absl::Span<const Lifetime> lifetimes) {
  ArenaPlan plan;
  plan.offsets.resize(lifetimes.size());
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return lifetimes[a].bytes > lifetimes[b].bytes;
  });
  std::vector<PlacedRange> taken;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Lifetime& lifetime = lifetimes[order[i]];
    const int64_t bytes = Aligned(lifetime.bytes);
    taken.clear();
    for (std::size_t j = 0; j < i; ++j) {
      const Lifetime& other = lifetimes[order[j]];
      if (other.first > lifetime.last || lifetime.first > other.last) continue;
      const int64_t begin = plan.offsets[order[j]];
      taken.push_back({begin, begin + Aligned(other.bytes)});
    }
    std::sort(taken.begin(), taken.end(),
              [](const PlacedRange& a, const PlacedRange& b) { return a.begin < b.begin; });
    plan.offsets[order[i]] = BestOffset(taken, bytes);
    plan.bytes = std::max(plan.bytes, plan.offsets[order[i]] + bytes);
  }
  return plan;
}

// The free ranges of an arena that grows.
class FreeRanges {
 public:
  // The tightest one, or the end of the arena.
  int64_t Take(int64_t bytes) {
    auto found = by_size_.lower_bound({bytes, 0});
    if (found == by_size_.end()) return Grow(bytes);
    const auto [size, begin] = *found;
    Remove(begin, size);
    if (size > bytes) Add(begin + bytes, size - bytes);
    return begin;
  }
  void Give(int64_t begin, int64_t bytes) {
    const auto after = by_begin_.lower_bound(begin);
    if (after != by_begin_.end() && after->first == begin + bytes) {
      bytes += after->second;
      Remove(after->first, after->second);
    }
    const auto next = by_begin_.lower_bound(begin);
    if (next != by_begin_.begin()) {
      const auto [first, size] = *std::prev(next);
      if (first + size == begin) {
        Remove(first, size);
        begin = first;
        bytes += size;
      }
    }
    Add(begin, bytes);
  }
  int64_t bytes() const { return end_; }

 private:
  // What is free at the end counts.
  int64_t Grow(int64_t bytes) {
    int64_t begin = end_;
    if (!by_begin_.empty()) {
      const auto [first, size] = *by_begin_.rbegin();
      if (first + size == end_) {
        Remove(first, size);
        begin = first;
      }
    }
    end_ = begin + bytes;
    return begin;
  }
  void Add(int64_t begin, int64_t size) {
    by_begin_.emplace(begin, size);
    by_size_.emplace(size, begin);
  }
  void Remove(int64_t begin, int64_t size) {
    by_begin_.erase(begin);
    by_size_.erase({size, begin});
  }

  std::map<int64_t, int64_t> by_begin_;
  std::set<std::pair<int64_t, int64_t>> by_size_;
  int64_t end_ = 0;
};

// Earliest first: each takes the tightest range that is free when it begins.
ArenaPlan PlanByTime(absl::Span<const Lifetime> lifetimes) {
  ArenaPlan plan;
  plan.offsets.resize(lifetimes.size());
  std::vector<std::size_t> begins(lifetimes.size());
  std::iota(begins.begin(), begins.end(), 0);
  std::vector<std::size_t> ends = begins;
  std::stable_sort(begins.begin(), begins.end(), [&](std::size_t a, std::size_t b) {
    return lifetimes[a].first < lifetimes[b].first;
  });
  std::stable_sort(ends.begin(), ends.end(), [&](std::size_t a, std::size_t b) {
    return lifetimes[a].last < lifetimes[b].last;
  });
  FreeRanges free;
  std::size_t ended = 0;
  for (const std::size_t i : begins) {
    for (; lifetimes[ends[ended]].last < lifetimes[i].first; ++ended) {
      const std::size_t gone = ends[ended];
      if (lifetimes[gone].bytes > 0) free.Give(plan.offsets[gone], Aligned(lifetimes[gone].bytes));
    }
    if (lifetimes[i].bytes > 0) plan.offsets[i] = free.Take(Aligned(lifetimes[i].bytes));
  }
  plan.bytes = free.bytes();
  return plan;
}

}  // namespace

ArenaPlan PlanArena(absl::Span<const Lifetime> lifetimes) {
  return lifetimes.size() <= kMaxBySize ? PlanBySize(lifetimes) : PlanByTime(lifetimes);
}

ArenaPlan PlanApart(absl::Span<const Lifetime> lifetimes) {
  ArenaPlan plan;
  for (const Lifetime& lifetime : lifetimes) {
    plan.offsets.push_back(plan.bytes);
    plan.bytes += Aligned(lifetime.bytes) + kAlignment;
  }
  return plan;
}

}  // namespace lazuli::backend
