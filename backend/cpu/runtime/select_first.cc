#include "backend/cpu/runtime/select_first.h"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace lazuli::cpu {
namespace {

// How many items are collected, at least, before the first of them are selected.
constexpr int64_t kLeastRoom = 256;
// Keys that are looked at together. Few: later on most blocks have none that counts, and are skipped.
constexpr int64_t kBlock = 64;

bool Before(PackedItem a, PackedItem b) { return a < b; }
bool Before(const Item& a, const Item& b) {
  return std::tie(a.key, a.place) < std::tie(b.key, b.place);
}

// --- whether a block of floats has one that comes before a bound

using Floats [[gnu::vector_size(64)]] = float;
using Masks [[gnu::vector_size(64)]] = int32_t;
constexpr int64_t kLanes = 16;

// NaN is the largest: it comes first in a descending order, last in an ascending one.
[[gnu::always_inline]] inline bool AnyBefore(const float* x, float bound, bool descending) {
  const Floats limit = Floats{} + bound;
  Masks any = {};
  for (int64_t i = 0; i < kBlock; i += kLanes) {
    Floats v;
    std::memcpy(&v, x + i, sizeof v);
    any |= descending ? ~(v <= limit) : v < limit;
  }
  uint64_t words[8], all = 0;
  static_assert(sizeof words == sizeof any);
  std::memcpy(words, &any, sizeof words);
  for (const uint64_t word : words) all |= word;
  return all != 0;
}
bool AnyBeforeAnywhere(const float* x, float bound, bool descending) {
  return AnyBefore(x, bound, descending);
}
#if defined(__x86_64__)
[[gnu::target("avx2")]] bool AnyBeforeAvx2(const float* x, float bound, bool descending) {
  return AnyBefore(x, bound, descending);
}
[[gnu::target("avx512f,avx512dq,avx512vl,prefer-vector-width=512")]] bool AnyBeforeAvx512(
    const float* x, float bound, bool descending) {
  return AnyBefore(x, bound, descending);
}
#endif
using AnyBeforeFunction = bool (*)(const float*, float, bool);
AnyBeforeFunction BestAnyBefore() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return AnyBeforeAvx512;
  if (__builtin_cpu_supports("avx2")) return AnyBeforeAvx2;
#endif
  return AnyBeforeAnywhere;
}

// Collects the first items. A later item that does not come before the last of them is dropped.
template <class AnyItem>
class First {
 public:
  First(AnyItem* items, int64_t first, int64_t count)
      : items_(items), first_(first), room_(std::min(count, 2 * first + kLeastRoom)) {}

  void Add(const AnyItem* block, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      items_[kept_] = block[i];
      kept_ += !has_bound_ || Before(block[i], bound_) ? 1 : 0;
      if (kept_ >= room_ && kept_ > first_) Shrink();
    }
  }
  void Finish() {
    if (kept_ > first_) Shrink();
    std::sort(items_, items_ + first_, [](const auto& a, const auto& b) { return Before(a, b); });
  }
  bool has_bound() const { return has_bound_; }
  const AnyItem& bound() const { return bound_; }  // the last of the first

 private:
  void Shrink() {
    std::nth_element(items_, items_ + first_ - 1, items_ + kept_,
                     [](const auto& a, const auto& b) { return Before(a, b); });
    kept_ = first_;
    bound_ = items_[first_ - 1];
    has_bound_ = true;
  }

  AnyItem* items_;
  int64_t first_, room_, kept_ = 0;
  AnyItem bound_{};
  bool has_bound_ = false;
};

}  // namespace

template <class AnyItem>
bool SelectFirst(const KeyForm& form, const std::byte* keys, int64_t stride, int64_t count,
                 int64_t first, AnyItem* items) {
  static const AnyBeforeFunction any_before = BestAnyBefore();
  const bool skips = form.is_float && form.nan_is_largest && form.width == 4 &&
                     form.exponent_bits == 8 && stride == 4;
  AnyItem block[kBlock];
  First<AnyItem> selected(items, first, count);
  bool ordered = true;
  for (int64_t at = 0; at < count; at += kBlock) {
    const int64_t here = std::min(kBlock, count - at);
    if (skips && selected.has_bound() && here == kBlock) {
      const auto* const floats = reinterpret_cast<const float*>(keys);
      const float bound = floats[PlaceOf(selected.bound())];
      const bool is_nan = bound != bound;
      if (!is_nan && !any_before(floats + at, bound, form.descending)) continue;
    }
    ordered &= NumberKeys(form, keys + at * stride, stride, here, static_cast<uint32_t>(at), block);
    selected.Add(block, here);
  }
  selected.Finish();
  return ordered;
}

template bool SelectFirst(const KeyForm&, const std::byte*, int64_t, int64_t, int64_t, Item*);
template bool SelectFirst(const KeyForm&, const std::byte*, int64_t, int64_t, int64_t, PackedItem*);

}  // namespace lazuli::cpu
