// Who touched the bytes of a memory last, by ranges.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace lazuli::npu {

// Of each of `units`, an operation: the last one that is known to be done, or that touched something;
// -1: none.
template <std::size_t units>
class UnitClock : public std::array<int, units> {
 public:
  UnitClock() { this->fill(-1); }
};

// Operations are numbers. Of a range there is one writer, and since then a reader of each unit.
template <std::size_t units>
class Touched {
 public:
  struct TouchedRange {
    int64_t end;
    int writer = -1;
    UnitClock<units> readers = {};
  };

  // f(range) for what lies in [low, high), which then is whole ranges.
  template <class F>
  void ForEach(int64_t low, int64_t high, F f) {
    Split(low);
    Split(high);
    for (auto at = ranges_.lower_bound(low); at != ranges_.end() && at->first < high; ++at)
      f(at->second);
  }
  void Read(int64_t low, int64_t high, int op, int unit) {
    Split(low);
    Split(high);
    int64_t next = low;
    std::vector<std::pair<int64_t, int64_t>> gaps;
    for (auto at = ranges_.lower_bound(low); at != ranges_.end() && at->first < high; ++at) {
      if (at->first > next) gaps.emplace_back(next, at->first);
      at->second.readers[static_cast<std::size_t>(unit)] = op;
      next = at->second.end;
    }
    if (next < high) gaps.emplace_back(next, high);
    for (const auto& [from, to] : gaps) {
      TouchedRange range{to};
      range.readers[static_cast<std::size_t>(unit)] = op;
      ranges_.emplace(from, range);
    }
  }
  void Write(int64_t low, int64_t high, int op) {
    Split(low);
    Split(high);
    ranges_.erase(ranges_.lower_bound(low), ranges_.lower_bound(high));
    ranges_[low] = TouchedRange{high, op};
  }

 private:
  void Split(int64_t at) {
    auto next = ranges_.upper_bound(at);
    if (next == ranges_.begin()) return;
    auto& [begin, range] = *std::prev(next);
    if (begin == at || range.end <= at) return;
    TouchedRange rest = range;
    range.end = at;
    ranges_.emplace(at, rest);
  }

  std::map<int64_t, TouchedRange> ranges_;
};

}  // namespace lazuli::npu
