// Keys of a sort as unsigned numbers of the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/types/span.h"

#include "ir/support/attrs.h"
#include "ir/types/dtype.h"

namespace lazuli::cpu {

// A key's number and the place of its element in the line.
struct Item {
  uint64_t key;
  uint32_t place;
};

struct KeyForm {
  int width = 0;  // bytes
  bool is_float = false, is_signed = false;
  bool descending = false;
  bool total_order = false;     // of floats; else zeros are equal, and NaN has no place, unless
  bool nan_is_largest = false;  // of floats without a total order
  int exponent_bits = 0;        // of a float
  // Whether any numbers have an order.
  LAZULI_ATTRS(width, is_float, is_signed, descending, total_order, nan_is_largest, exponent_bits);
  bool always() const { return !is_float || total_order || nan_is_largest; }
};
// nullopt for types without bits of their order.
std::optional<KeyForm> FormOf(DType dtype, bool descending, bool total_order,
                              bool nan_is_largest = false);

// Key and place in one number, which orders items as a stable sort does: for keys of 4 bytes at most.
using PackedItem = uint64_t;
inline uint32_t PlaceOf(PackedItem item) { return static_cast<uint32_t>(item); }
inline uint32_t PlaceOf(const Item& item) { return item.place; }

// Numbers for `count` keys that lie `stride` bytes apart, whose places count from `first`. False if one
// is a NaN without a place. Packed: for keys of 4 bytes at most.
bool NumberKeys(const KeyForm& form, const std::byte* keys, int64_t stride, int64_t count,
                uint32_t first, Item* items);
bool NumberKeys(const KeyForm& form, const std::byte* keys, int64_t stride, int64_t count,
                uint32_t first, PackedItem* items);
// The same for those at order[0], order[1], ...
bool NumberKeys(const KeyForm& form, const std::byte* keys, int64_t stride,
                absl::Span<const uint32_t> order, Item* items);

}  // namespace lazuli::cpu
