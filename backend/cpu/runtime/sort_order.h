// What a sort's comparator says, where it says that keys are compared one after the other.
//
//   less(a0, b0, a1, b1) = key(a0) < key(b0) || (key(a0) == key(b0) && a1 > b1)
//
// A key is any elementwise expression of one element (JAX puts zeros and NaN in order by one), so
// that it can be computed for the whole array, and the sort needs no call for a comparison.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "ir/hlo/module.h"

namespace lazuli::cpu {

struct SortKey {
  int64_t operand = 0;  // whose elements it is made of
  DType dtype{};
  bool descending = false;
  bool total_order = false;     // of floats; without it NaN has no place, unless
  bool nan_is_largest = false;  // all NaN are one key above infinity, and both zeros are one key
  // Its entry makes the key of an element; null if the element itself is the key.
  std::unique_ptr<hlo::Module> expression;
};

// The keys, most significant first; nullopt for a comparator of another form.
std::optional<std::vector<SortKey>> MatchSortOrder(const hlo::Computation& comparator);

}  // namespace lazuli::cpu
