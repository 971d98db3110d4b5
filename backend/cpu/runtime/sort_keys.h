// Keys of a sort as unsigned numbers of the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

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
  bool total_order = false;  // of floats; else zeros are equal and NaN has no place
  int exponent_bits = 0;     // of a float
};
// nullopt for types without bits of their order.
std::optional<KeyForm> FormOf(DType dtype, bool descending, bool total_order);

// Numbers for `count` keys `stride` bytes apart, those at order[0], order[1], ... if there is an
// order. False if one is a NaN without a place.
bool NumberKeys(const KeyForm& form, const std::byte* keys, int64_t stride, const uint32_t* order,
                int64_t count, Item* items);

}  // namespace lazuli::cpu
