#include "ir/types/dtype.h"

#include <array>
#include <cstring>

namespace lazuli::ir {
namespace {

constexpr DTypeRow kRows[] = {
#define LAZULI_DTYPE(name, text, bits, category, storage, doc) \
  {text, bits, static_cast<int>(sizeof(storage)), DTypeCategory::category, doc},
#include "ir/types/dtype.def"
#undef LAZULI_DTYPE
    {"token", 0, 0, DTypeCategory::kNone, "Orders side effects."},
    {"opaque", 0, 0, DTypeCategory::kNone, "Bytes that only a custom call understands."},
    {"tuple", 0, 0, DTypeCategory::kNone, "A list of shapes."},
};

// A text of at most eight characters as one word, so that looking a type up compares words.
constexpr uint64_t Packed(std::string_view text) {
  uint64_t word = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    word |= uint64_t{static_cast<uint8_t>(text[i])} << (8 * i);
  return word;
}

constexpr auto kPacked = [] {
  std::array<uint64_t, kNumArrayDTypes + 2> words{};  // no text spells a tuple
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (kRows[i].text.size() <= 8) words[i] = Packed(kRows[i].text);
  }
  return words;
}();

// What torch's table covers of integers: pred, u8 and the signed types from s8.
bool IsTorchInteger(DType t) {
  return t == DType::kPred || t == DType::kU8 || t == DType::kS8 || t == DType::kS16 ||
         t == DType::kS32 || t == DType::kS64;
}
bool IsTorchFloat(DType t) {
  return t == DType::kF16 || t == DType::kBF16 || t == DType::kF32 || t == DType::kF64;
}
bool IsWideUnsigned(DType t) { return t == DType::kU16 || t == DType::kU32 || t == DType::kU64; }

DType PromoteIntegers(DType a, DType b) {
  if (a == DType::kPred) return b;
  if (b == DType::kPred) return a;
  const DType wide = ByteWidth(a) >= ByteWidth(b) ? a : b;
  const bool mixed = IsUnsigned(a) != IsUnsigned(b);  // u8 with a signed type
  return mixed && ByteWidth(wide) == 1 ? DType::kS16 : wide;
}

DType PromoteFloats(DType a, DType b) {
  if (a == b) return a;
  if (ByteWidth(a) == ByteWidth(b)) return DType::kF32;  // f16 with bf16
  return ByteWidth(a) > ByteWidth(b) ? a : b;
}

}  // namespace

const DTypeRow& Row(DType dtype) { return kRows[static_cast<int>(dtype)]; }

std::optional<DType> ParseDType(std::string_view text) {
  if (text.size() <= 8) {
    const uint64_t word = Packed(text);
    for (std::size_t i = 0; i < kPacked.size(); ++i) {
      if (kPacked[i] == word && word != 0) return static_cast<DType>(i);
    }
    return std::nullopt;
  }
  for (std::size_t i = 0; i < kPacked.size(); ++i) {
    if (kRows[i].text == text) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::optional<DType> Promote(DType a, DType b) {
  if (a == b) return a;
  auto known = [](DType t) {
    return IsTorchInteger(t) || IsTorchFloat(t) || IsWideUnsigned(t) || IsComplex(t);
  };
  if (!known(a) || !known(b)) return std::nullopt;
  if (IsTorchFloat(a) && IsTorchFloat(b)) return PromoteFloats(a, b);
  if (IsTorchFloat(a) && !IsComplex(b)) return a;
  if (IsTorchFloat(b) && !IsComplex(a)) return b;
  if (IsWideUnsigned(a) || IsWideUnsigned(b)) return std::nullopt;
  if (IsComplex(a) || IsComplex(b)) {
    const bool wide =
        a == DType::kC128 || b == DType::kC128 || a == DType::kF64 || b == DType::kF64;
    return wide ? DType::kC128 : DType::kC64;
  }
  return PromoteIntegers(a, b);
}

}  // namespace lazuli::ir
