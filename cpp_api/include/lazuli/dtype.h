// Element types.
#pragma once

#include <complex>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "lazuli/export.h"

namespace lazuli {

// The array types of HLO in the order of its table; the library checks that both agree.
enum class DType : std::uint8_t {
  kPred,
  kS2,
  kS4,
  kS8,
  kS16,
  kS32,
  kS64,
  kU2,
  kU4,
  kU8,
  kU16,
  kU32,
  kU64,
  kF16,
  kBF16,
  kF32,
  kF64,
  kC64,
  kC128,
  kF8E5M2,
  kF8E4M3,
  kF8E4M3FN,
  kF8E4M3B11FNUZ,
  kF8E4M3FNUZ,
  kF8E5M2FNUZ,
  kF8E3M4,
  kF8E8M0FNU,
  kF4E2M1FN,
};
inline constexpr DType kBool = DType::kPred, kInt8 = DType::kS8, kInt16 = DType::kS16,
                       kInt32 = DType::kS32, kInt64 = DType::kS64, kUInt8 = DType::kU8,
                       kFloat16 = DType::kF16, kBFloat16 = DType::kBF16, kFloat32 = DType::kF32,
                       kFloat64 = DType::kF64;

// "f32", "s64", "pred".
LAZULI_API std::string_view to_string(DType dtype);

// The dtype of a C++ type: float is kF32.
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, bool>)
    return DType::kPred;
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    return DType::kC64;
  else if constexpr (std::is_same_v<T, std::complex<double>>)
    return DType::kC128;
  else if constexpr (std::is_floating_point_v<T>)
    return sizeof(T) == 4 ? DType::kF32 : DType::kF64;
  else if constexpr (std::is_signed_v<T>)
    return sizeof(T) == 1   ? DType::kS8
           : sizeof(T) == 2 ? DType::kS16
           : sizeof(T) == 4 ? DType::kS32
                            : DType::kS64;
  else
    return sizeof(T) == 1   ? DType::kU8
           : sizeof(T) == 2 ? DType::kU16
           : sizeof(T) == 4 ? DType::kU32
                            : DType::kU64;
}

// The dtype of floats that say none - numbers, integers in functions of floats, tensors that are made
// without one - in this process: float32, unless it was set to another float type.
LAZULI_API DType default_dtype();
LAZULI_API void set_default_dtype(DType dtype);
// The dtype that tensors of these two have in common, as PyTorch defines it. Throws Error if there
// is none.
LAZULI_API DType promote_types(DType x, DType y);
// Whether what is computed in one dtype may be written to another: no complex numbers to real ones,
// no floats to integers, nothing but bool to bool.
LAZULI_API bool can_cast(DType from, DType to);

}  // namespace lazuli
