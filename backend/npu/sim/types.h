// Element types of the NPU: four bits of an instruction, a descriptor or an argument.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "backend/npu/sim/namespace.h"

namespace lazuli::npu {

// kNone: bytes, of the width that a descriptor says. s4 and f16 can be stored, not computed with.
enum class Type : uint8_t {
  kNone,
  kPred,
  kS4,
  kS8,
  kU8,
  kS16,
  kS32,
  kU32,
  kBf16,
  kF16,
  kF32,
  kS64
};

struct TypeRow {
  std::string_view name;
  int bytes;  // of an element in memory; two s4 share none
};
inline constexpr std::array<TypeRow, 12> kTypes = {{{"none", 0},
                                                    {"pred", 1},
                                                    {"s4", 1},
                                                    {"s8", 1},
                                                    {"u8", 1},
                                                    {"s16", 2},
                                                    {"s32", 4},
                                                    {"u32", 4},
                                                    {"bf16", 2},
                                                    {"f16", 2},
                                                    {"f32", 4},
                                                    {"s64", 8}}};

// Of four bits that are no type: "?" and 0.
constexpr std::string_view TypeName(Type type) {
  return static_cast<std::size_t>(type) < kTypes.size()
             ? kTypes[static_cast<std::size_t>(type)].name
             : "?";
}
constexpr int TypeBytes(Type type) {
  return static_cast<std::size_t>(type) < kTypes.size()
             ? kTypes[static_cast<std::size_t>(type)].bytes
             : 0;
}
constexpr std::optional<Type> TypeFromName(std::string_view name) {
  for (std::size_t i = 1; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name) return static_cast<Type>(i);
  }
  return std::nullopt;
}
// The bits of an element in memory as a number: those of s8, s16 and s32 with their sign.
constexpr int64_t NumberOf(Type type, uint64_t bits) {
  return type == Type::kS8    ? static_cast<int8_t>(bits)
         : type == Type::kS16 ? static_cast<int16_t>(bits)
         : type == Type::kS32 ? static_cast<int32_t>(bits)
                              : static_cast<int64_t>(bits);
}
constexpr uint32_t Bit(Type type) { return 1u << static_cast<int>(type); }

}  // namespace lazuli::npu
