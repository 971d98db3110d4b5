// The first of a line's elements in order, without sorting all of them.
#pragma once

#include "backend/cpu/runtime/sort_keys.h"

namespace lazuli::cpu {

// Puts the items of the `first` smallest keys in front, in order; of equal keys, the one at the lower
// place comes first. `items` has room for `count`. False if a key has no order. For Item and
// PackedItem.
template <class AnyItem>
bool SelectFirst(const KeyForm& form, const std::byte* keys, int64_t stride, int64_t count,
                 int64_t first, AnyItem* items);

}  // namespace lazuli::cpu
