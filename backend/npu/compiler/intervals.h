// What a register may hold, and ranges of bytes: for who follows a program without running it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace lazuli::npu {

inline constexpr int64_t kUnknown = int64_t{1} << 56;  // nothing that is computed with gets there

// What a register may hold.
struct Interval {
  int64_t low = 0, high = 0;
  bool known() const { return low == high; }
  bool operator==(const Interval&) const = default;
};
inline constexpr Interval kAnything{-kUnknown, kUnknown};

inline Interval Limited(__int128 low, __int128 high) {
  const auto limit = [](__int128 v) {
    return static_cast<int64_t>(std::clamp<__int128>(v, -kUnknown, kUnknown));
  };
  return {limit(low), limit(high)};
}
inline Interval Sum(const Interval& a, const Interval& b) {
  return Limited(__int128{a.low} + b.low, __int128{a.high} + b.high);
}
inline Interval Product(const Interval& a, const Interval& b) {
  const __int128 corners[] = {__int128{a.low} * b.low, __int128{a.low} * b.high,
                              __int128{a.high} * b.low, __int128{a.high} * b.high};
  return Limited(*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4));
}
inline Interval Joined(const Interval& a, const Interval& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

// Ranges of bytes.
class Written {
 public:
  void Add(int64_t low, int64_t high) {
    auto at = ranges_.upper_bound(low);
    if (at != ranges_.begin() && std::prev(at)->second >= low) --at;
    while (at != ranges_.end() && at->first <= high) {
      low = std::min(low, at->first);
      high = std::max(high, at->second);
      at = ranges_.erase(at);
    }
    ranges_[low] = high;
  }
  bool Has(int64_t low, int64_t high) const {
    auto at = ranges_.upper_bound(low);
    return at != ranges_.begin() && std::prev(at)->second >= high;
  }

 private:
  std::map<int64_t, int64_t> ranges_;
};

}  // namespace lazuli::npu
