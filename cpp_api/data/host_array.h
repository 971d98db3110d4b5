// Element types of arrays in host memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lazuli/data.h"

namespace lazuli::data {

// Calls f with a value of the C++ type of the dtype; nullptr for a dtype that has none.
template <class F>
auto WithType(DType dtype, F f) {
  switch (dtype) {
    case kBool:
      return f(bool{});
    case kInt8:
      return f(std::int8_t{});
    case kInt16:
      return f(std::int16_t{});
    case kInt32:
      return f(std::int32_t{});
    case kInt64:
      return f(std::int64_t{});
    case kUInt8:
      return f(std::uint8_t{});
    case DType::kU16:
      return f(std::uint16_t{});
    case DType::kU32:
      return f(std::uint32_t{});
    case DType::kU64:
      return f(std::uint64_t{});
    case kFloat32:
      return f(float{});
    case kFloat64:
      return f(double{});
    default:
      return f(nullptr);
  }
}

// Of an array of these dims, none of which is negative. Throws Error(kUnimplemented) for a dtype
// that has no C++ type.
std::size_t ByteSize(const Dims& dims, DType dtype);

}  // namespace lazuli::data
