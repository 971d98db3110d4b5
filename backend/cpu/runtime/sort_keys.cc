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

// Calls use(i, place, number) for each key; whether all have an order.
template <class Bits, class Place, class Use>
bool ForEachNumber(const KeyForm& form, const std::byte* keys, int64_t stride, int64_t count,
                   Place&& place_of, Use&& use) {
  constexpr int kBits = 8 * sizeof(Bits);
  constexpr Bits kSign = static_cast<Bits>(Bits{1} << (kBits - 1));
  const int mantissa_bits = kBits - 1 - form.exponent_bits;
  const auto infinity =
      static_cast<Bits>(((uint64_t{1} << form.exponent_bits) - 1) << mantissa_bits);
  const Bits flip = form.descending ? static_cast<Bits>(~Bits{0}) : Bits{0};
  bool ordered = true;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t place = place_of(i);
    Bits bits;
    std::memcpy(&bits, keys + place * stride, sizeof bits);
    if (form.is_float) {
      const auto magnitude = static_cast<Bits>(bits & static_cast<Bits>(~kSign));
      const bool is_nan = magnitude > infinity;
      if (!form.total_order && magnitude == 0) bits = 0;
      bits = OrderOfFloat(bits);
      if (!form.total_order && is_nan) bits = static_cast<Bits>(~Bits{0});
      ordered = ordered && !is_nan;
    } else if (form.is_signed) {
      bits = static_cast<Bits>(bits ^ kSign);
    }
    use(i, place, static_cast<Bits>(bits ^ flip));
  }
  return ordered || form.always();
}

}  // namespace

std::optional<KeyForm> FormOf(DType dtype, bool descending, bool total_order, bool nan_is_largest) {
  KeyForm form{.width = ByteWidth(dtype),
               .is_float = IsFloat(dtype),
               .is_signed = IsSigned(dtype),
               .descending = descending,
               .total_order = total_order,
               .nan_is_largest = nan_is_largest};
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

namespace {

// ForEachNumber, for the width of the form's keys.
template <class Place, class Use>
bool ForEachKey(const KeyForm& form, const std::byte* keys, int64_t stride, int64_t count,
                Place&& place_of, Use&& use) {
  switch (form.width) {
    case 1:
      return ForEachNumber<uint8_t>(form, keys, stride, count, place_of, use);
    case 2:
      return ForEachNumber<uint16_t>(form, keys, stride, count, place_of, use);
    case 4:
      return ForEachNumber<uint32_t>(form, keys, stride, count, place_of, use);
    default:
      return ForEachNumber<uint64_t>(form, keys, stride, count, place_of, use);
  }
}

uint32_t AsTheyLie(int64_t i) { return static_cast<uint32_t>(i); }

}  // namespace

bool NumberKeys(const KeyForm& form, const std::byte* keys, int64_t stride,
                absl::Span<const uint32_t> order, Item* items) {
  return ForEachKey(
      form, keys, stride, static_cast<int64_t>(order.size()),
      [order](int64_t i) { return order[static_cast<std::size_t>(i)]; },
      [items](int64_t i, uint32_t place, uint64_t number) { items[i] = {number, place}; });
}

bool NumberKeys(const KeyForm& form, const std::byte* keys, int64_t stride, int64_t count,
                uint32_t first, Item* items) {
  return ForEachKey(form, keys, stride, count, AsTheyLie,
                    [items, first](int64_t i, uint32_t place, uint64_t number) {
                      items[i] = {number, first + place};
                    });
}

bool NumberKeys(const KeyForm& form, const std::byte* keys, int64_t stride, int64_t count,
                uint32_t first, PackedItem* items) {
  return ForEachKey(form, keys, stride, count, AsTheyLie,
                    [items, first](int64_t i, uint32_t place, uint64_t number) {
                      items[i] = number << 32 | (first + place);
                    });
}

}  // namespace lazuli::cpu
