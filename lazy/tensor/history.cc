#include "lazy/tensor/history.h"

#include <algorithm>
#include <atomic>

#include "ir/support/flags.h"
#include "ir/support/runtime.h"

namespace lazuli::lazy {
namespace {

// A graph of so many limits is cut also if it does not repeat: what is recorded is bounded.
constexpr int64_t kLimits = 16;
// A greater limit is one that somebody wants as it is; no history is kept for it.
constexpr int64_t kLongest = 1 << 16;

int64_t LastLimit(int64_t limit) {
  return limit >= kLongest ? limit : std::min(kLimits * limit, kLongest);
}

// The runtime's.
std::atomic<bool>& Eager() {
  struct EagerMode {
    std::atomic<bool> on{ir::flags().use_eager()};
  };
  return ir::Runtime::Get().Of<EagerMode>().on;
}

}  // namespace

void History::SetEager(bool eager) { Eager().store(eager, std::memory_order_relaxed); }
bool History::eager() { return Eager().load(std::memory_order_relaxed); }

History::History(int64_t limit)
    : limit_(std::max<int64_t>(limit, 0)), last_limit_(LastLimit(limit_)) {
  LookAgainAfter(limit_);
  if (cuts_each()) next_look_ = 0;
}

void History::LookAgainAfter(int64_t count) {
  next_look_ = count;
  if (limit_ >= kLongest) return;
  const auto needed = static_cast<std::size_t>(count) + 1;
  if (nodes_.size() < needed) nodes_.resize(needed);
}

void History::Clear() {
  count_ = planned_ = 0;
  next_look_ = cuts_each() ? 0 : limit_;
  ++syncs_;
}

bool History::CutHere() {
  if (!due()) return false;
  if (cuts_each()) return true;
  if (count_ > static_cast<int64_t>(nodes_.size())) return true;  // no history, or no longer whole
  if (planned_ > 0 && (Repeats(period_, period_) || count_ > last_limit_)) return true;
  planned_ = 0;
  if (!RepeatsEvery(period_)) period_ = Period();  // mostly the loop of the last graph goes on
  if (period_ > 0) {
    planned_ = CutAfter(period_);
    if (planned_ == count_) return true;
    LookAgainAfter(planned_ - 1);
    return false;
  }
  if (count_ > last_limit_) return true;
  LookAgainAfter(std::min(2 * (count_ - 1), last_limit_));
  return false;
}

// After how many nodes the newest part of the graph, at least half of it, repeats at least once; 0
// if it does not. Of several the one that explains most, so the iteration and not a loop in it.
int64_t History::Period() const {
  // The Z algorithm on the nodes, newest first: same[p] is how many of the newest nodes are those p
  // before them.
  const auto at = [this](int64_t k) {
    return nodes_[static_cast<std::size_t>(count_ - 1 - k)].what;
  };
  std::vector<int64_t> same(static_cast<std::size_t>(count_), 0);
  int64_t begin = 0, end = 0, best = 0, most = 0;
  for (int64_t p = 1; p <= count_ / 2; ++p) {
    int64_t length = 0;
    if (p < end) length = std::min(end - p, same[static_cast<std::size_t>(p - begin)]);
    while (p + length < count_ && at(length) == at(p + length)) ++length;
    if (p + length > end) {
      begin = p;
      end = p + length;
    }
    same[static_cast<std::size_t>(p)] = length;
    if (length >= p && length + p >= count_ / 2 && length > most) {
      most = length;
      best = p;
    }
  }
  return best;
}

// Whether the newest `length` nodes are those `period` before them.
bool History::Repeats(int64_t period, int64_t length) const {
  for (int64_t k = std::max(period, count_ - length); k < count_; ++k) {
    if (nodes_[static_cast<std::size_t>(k)].what !=
        nodes_[static_cast<std::size_t>(k - period)].what)
      return false;
  }
  return true;
}

// Whether Period() could give this one, which is much quicker to see than to find.
bool History::RepeatsEvery(int64_t period) const {
  return period > 0 && period <= count_ / 2 &&
         Repeats(period, std::max(period, count_ / 2 - period));
}

// The next count at which the graph is at the end of an iteration: where the fewest tensors were
// pending. Of several such places the one where this graph began, so that the next begins there,
// too.
int64_t History::CutAfter(int64_t period) const {
  const auto pending = [this](int64_t count) {
    return nodes_[static_cast<std::size_t>(count - 1)].pending;
  };
  int64_t end = count_ / period * period;
  for (int64_t k = count_ - period + 1; k <= count_; ++k) {
    if (pending(k) < pending(end)) end = k;
  }
  return end == count_ ? count_ : end + period;
}

}  // namespace lazuli::lazy
