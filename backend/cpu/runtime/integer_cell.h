// Integers of any type in memory, read as 64 bits.
#pragma once

#include <cstring>

#include "ir/types/dtype.h"

namespace lazuli::cpu {

class IntegerCell {
 public:
  explicit IntegerCell(DType dtype) : bytes_(ByteWidth(dtype)), is_signed_(IsSigned(dtype)) {}
  int bytes() const { return bytes_; }
  bool is_signed() const { return is_signed_; }
  int64_t Read(const std::byte* at) const {
    switch (bytes_) {
      case 1:
        return is_signed_ ? int64_t{Load<int8_t>(at)} : int64_t{Load<uint8_t>(at)};
      case 2:
        return is_signed_ ? int64_t{Load<int16_t>(at)} : int64_t{Load<uint16_t>(at)};
      case 4:
        return is_signed_ ? int64_t{Load<int32_t>(at)} : int64_t{Load<uint32_t>(at)};
      default:
        return Load<int64_t>(at);
    }
  }

 private:
  template <class T>
  static T Load(const std::byte* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  int bytes_;
  bool is_signed_;
};

}  // namespace lazuli::cpu
