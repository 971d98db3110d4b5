#include "ir/hlo/opcode.h"

#include <iterator>

#include "absl/container/flat_hash_map.h"

#include "ir/hlo/attrs.h"

namespace lazuli::hlo {
namespace {

// Flags of a row: the element types of operands, as a set of categories, and properties.
enum Flags : uint16_t {
  kPredBit = 1 << 0,
  kSignedBit = 1 << 1,
  kUnsignedBit = 1 << 2,
  kFloat = 1 << 3,
  kComplexBit = 1 << 4,
  kOtherBit = 1 << 5,  // tuples, tokens
  kIntegral = kSignedBit | kUnsignedBit,
  kBits = kIntegral | kPredBit,
  kReal = kIntegral | kFloat,
  kFloatOrComplex = kFloat | kComplexBit,
  kSignedMath = kSignedBit | kFloat | kComplexBit,
  kOrdered = kReal | kPredBit,
  kArithmetic = kReal | kComplexBit | kPredBit,
  kAny = kArithmetic | kOtherBit,
  kElementwise = 1 << 8,
  kCommutative = 1 << 9,
  kSideEffects = 1 << 10,
  kBarrier = 1 << 11,
  kExchanges = 1 << 12,
};

constexpr OpcodeTraits MakeTraits(std::string_view text, int arity, int flags, int regions,
                                  AttrsKind attrs) {
  return {text,
          static_cast<int8_t>(arity),
          (flags & kElementwise) != 0,
          (flags & kCommutative) != 0,
          (flags & kSideEffects) != 0,
          (flags & kBarrier) != 0,
          (flags & kExchanges) != 0,
          static_cast<int8_t>(regions),
          attrs,
          static_cast<uint8_t>(flags & kAny)};
}

constexpr OpcodeTraits kTraits[] = {
#define LAZULI_OPCODE(name, text, arity, flags, regions, attrs, ...) \
  MakeTraits(text, arity, flags, regions, AttrsKind::attrs),
#include "ir/hlo/opcode.def"
#undef LAZULI_OPCODE
};

absl::flat_hash_map<std::string_view, Opcode> OpcodesByText() {
  absl::flat_hash_map<std::string_view, Opcode> map;
  for (std::size_t i = 0; i < std::size(kTraits); ++i)
    map[kTraits[i].text] = static_cast<Opcode>(i);
  return map;
}

}  // namespace

const OpcodeTraits& Traits(Opcode opcode) { return kTraits[static_cast<std::size_t>(opcode)]; }

std::optional<Opcode> ParseOpcode(std::string_view text) {
  static const auto& opcodes = *new auto(OpcodesByText());
  auto it = opcodes.find(text);
  if (it == opcodes.end()) return std::nullopt;
  return it->second;
}

int NumOpcodes() { return static_cast<int>(std::size(kTraits)); }

bool Accepts(Opcode opcode, DType dtype) {
  const int bit = Row(dtype).category == DTypeCategory::kNone
                      ? kOtherBit
                      : 1 << static_cast<int>(Row(dtype).category);
  return (Traits(opcode).categories & bit) != 0;
}

std::string_view AcceptedTypes(Opcode opcode) {
  switch (Traits(opcode).categories) {
    case kFloat:
      return "floating-point";
    case kFloatOrComplex:
      return "floating-point or complex";
    case kReal:
      return "integer or floating-point";
    case kOrdered:
      return "integer, floating-point or pred";
    case kSignedMath:
      return "signed, floating-point or complex";
    case kIntegral:
      return "integer";
    case kBits:
      return "integer or pred";
    case kArithmetic:
      return "array";
    default:
      return "any";
  }
}

}  // namespace lazuli::hlo
