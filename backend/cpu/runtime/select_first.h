// The first of a line's elements in order, without sorting all of them.
#pragma once

#include "backend/cpu/runtime/sort_keys.h"

namespace lazuli::cpu {

// Puts the items of the `first` first keys in front, in order; of equal keys that with the lower place
// comes first. `items` has room for `count`. False if a key has no order. Packed: for keys of 4 bytes at
// most.
bool SelectFirst(const KeyForm& form, const std::byte* keys, int64_t stride, int64_t count,
                 int64_t first, PackedItem* items);
bool SelectFirst(const KeyForm& form, const std::byte* keys, int64_t stride, int64_t count,
                 int64_t first, Item* items);

}  // namespace lazuli::cpu
