// The element types of HLO: one row each in dtype.def, from which enum, names, widths, traits and
// dispatch derive.
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <string_view>

#include "ir/support/check.h"
#include "ir/types/half.h"

namespace lazuli::ir {

enum class DType : uint8_t {
#define LAZULI_DTYPE(name, text, bits, category, storage, doc) name,
#include "ir/types/dtype.def"
#undef LAZULI_DTYPE
  kToken,   // orders side effects; has no elements
  kOpaque,  // bytes that only a custom call understands
  kTuple,   // a list of shapes; see Shape
};
inline constexpr int kNumArrayDTypes = static_cast<int>(DType::kToken);

enum class DTypeCategory : uint8_t { kPred, kSigned, kUnsigned, kFloat, kComplex, kNone };

struct DTypeRow {
  std::string_view text;
  int bits;   // width of one element in HLO
  int bytes;  // of one element in memory; sub-byte types take one byte
  DTypeCategory category;
  std::string_view doc;
};
const DTypeRow& Row(DType dtype);

inline std::string_view DTypeText(DType dtype) { return Row(dtype).text; }
inline int ByteWidth(DType dtype) { return Row(dtype).bytes; }
std::optional<DType> ParseDType(std::string_view text);

inline bool IsArray(DType t) { return static_cast<int>(t) < kNumArrayDTypes; }
inline bool IsFloat(DType t) { return Row(t).category == DTypeCategory::kFloat; }
inline bool IsComplex(DType t) { return Row(t).category == DTypeCategory::kComplex; }
inline bool IsSigned(DType t) { return Row(t).category == DTypeCategory::kSigned; }
inline bool IsUnsigned(DType t) { return Row(t).category == DTypeCategory::kUnsigned; }
inline bool IsIntegral(DType t) { return IsSigned(t) || IsUnsigned(t); }

// Type promotion as torch defines it for two tensors that both have dimensions:
// pred < integers < floats < complex; u8 with a signed type gives the smallest signed type that
// holds both. Returns nullopt where torch refuses (u16/u32/u64 with signed types).
std::optional<DType> Promote(DType a, DType b);

// Host type of a DType's elements and back.
template <DType kType>
struct HostTypeOf;
#define LAZULI_DTYPE(name, text, bits, category, storage, doc) \
  template <>                                                  \
  struct HostTypeOf<DType::name> {                             \
    using type = storage;                                      \
  };
#include "ir/types/dtype.def"
#undef LAZULI_DTYPE
template <DType kType>
using HostType = typename HostTypeOf<kType>::type;

// Category of a DType at compile time.
template <DType kType>
constexpr DTypeCategory CategoryOf() {
  switch (kType) {
#define LAZULI_DTYPE(name, text, bits, category, storage, doc) \
  case DType::name:                                            \
    return DTypeCategory::category;
#include "ir/types/dtype.def"
#undef LAZULI_DTYPE
    default:
      return DTypeCategory::kNone;
  }
}

// The canonical DType of a host type: int8_t is s8 (not s2, s4).
template <class T>
constexpr DType DTypeOf();

// Calls f.template operator()<kType>() for an array type; checks that it is one.
template <class F>
decltype(auto) VisitDType(DType dtype, F&& f) {
  switch (dtype) {
#define LAZULI_DTYPE(name, text, bits, category, storage, doc) \
  case DType::name:                                            \
    return f.template operator()<DType::name>();
#include "ir/types/dtype.def"
#undef LAZULI_DTYPE
    case DType::kToken:
    case DType::kOpaque:
    case DType::kTuple:
      break;
  }
  ir::internal::CheckFailed(__FILE__, __LINE__, "IsArray(dtype)", "");
}

template <class T>
constexpr DType DTypeOf() {
  if constexpr (std::is_same_v<T, bool>)
    return DType::kPred;
  else if constexpr (std::is_same_v<T, int8_t>)
    return DType::kS8;
  else if constexpr (std::is_same_v<T, int16_t>)
    return DType::kS16;
  else if constexpr (std::is_same_v<T, int32_t>)
    return DType::kS32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return DType::kS64;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return DType::kU8;
  else if constexpr (std::is_same_v<T, uint16_t>)
    return DType::kU16;
  else if constexpr (std::is_same_v<T, uint32_t>)
    return DType::kU32;
  else if constexpr (std::is_same_v<T, uint64_t>)
    return DType::kU64;
  else if constexpr (std::is_same_v<T, half>)
    return DType::kF16;
  else if constexpr (std::is_same_v<T, bfloat16>)
    return DType::kBF16;
  else if constexpr (std::is_same_v<T, float>)
    return DType::kF32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::kF64;
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    return DType::kC64;
  else if constexpr (std::is_same_v<T, std::complex<double>>)
    return DType::kC128;
  else
    static_assert(!sizeof(T), "no DType has this host type");
}

}  // namespace lazuli::ir

LAZULI_DECLARE_IN_STAGES(DType)
