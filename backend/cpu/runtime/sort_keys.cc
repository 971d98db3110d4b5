#include "backend/cpu/runtime/sort_keys.h"

#include <cstring>

namespace lazuli::cpu {
namespace {

// Bits of a float in an order that integers have: negative ones are inverted.
template <class Bits>
Bits OrderOfFloat(Bits bits) {
  constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  return static_cast<Bits>((bits & kSign) != 0 ? ~bits : bits | kSign);
}

template <class Bits>
bool Number(const KeyForm& form, const std::byte* keys, int64_t stride, const uint32_t* order,
            int64_t count, Item* items) {
  constexpr int kBits = 8 * sizeof(Bits);
  constexpr Bits kSign = static_cast<Bits>(Bits{1} << (kBits - 1));
  const int mantissa_bits = kBits - 1 - form.exponent_bits;
  const auto infinity =
      static_cast<Bits>(((uint64_t{1} << form.exponent_bits) - 1) << mantissa_bits);
  const Bits flip = form.descending ? static_cast<Bits>(~Bits{0}) : Bits{0};
  bool ordered = true;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t place = order == nullptr ? static_cast<uint32_t>(i) : order[i];
    Bits bits;
    std::memcpy(&bits, keys + place * stride, sizeof bits);
    if (form.is_float) {
      const auto magnitude = static_cast<Bits>(bits & static_cast<Bits>(~kSign));
      if (!form.total_order) {
        ordered = ordered && magnitude <= infinity;
        if (magnitude == 0) bits = 0;
      }
      bits = OrderOfFloat(bits);
    } else if (form.is_signed) {
      bits = static_cast<Bits>(bits ^ kSign);
    }
    items[i] = {static_cast<Bits>(bits ^ flip), place};
  }
  return ordered;
}

}  // namespace

std::optional<KeyForm> FormOf(DType dtype, bool descending, bool total_order) {
  KeyForm form{.width = ByteWidth(dtype),
               .is_float = IsFloat(dtype),
               .is_signed = IsSigned(dtype),
               .descending = descending,
               .total_order = total_order};
  if (IsComplex(dtype)) return std::nullopt;
  if (!form.is_float) return form;
  switch (dtype) {
    case DType::kF16:
      form.exponent_bits = 5;
      return form;
    case DType::kBF16:
    case DType::kF32:
      form.exponent_bits = 8;
      return form;
    case DType::kF64:
      form.exponent_bits = 11;
      return form;
    default:
      return std::nullopt;
  }
}

bool NumberKeys(const KeyForm& form, const std::byte* keys, int64_t stride, const uint32_t* order,
                int64_t count, Item* items) {
  switch (form.width) {
    case 1:
      return Number<uint8_t>(form, keys, stride, order, count, items);
    case 2:
      return Number<uint16_t>(form, keys, stride, order, count, items);
    case 4:
      return Number<uint32_t>(form, keys, stride, order, count, items);
    default:
      return Number<uint64_t>(form, keys, stride, order, count, items);
  }
}

}  // namespace lazuli::cpu
