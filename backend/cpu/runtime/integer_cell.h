// Integers of any type in memory, read as 64 bits with a sign.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>

#include "ir/support/attrs.h"
#include "ir/types/dtype.h"

namespace lazuli::cpu {

class IntegerCell {
 public:
  IntegerCell() = default;
  explicit IntegerCell(DType dtype) : bytes_(ByteWidth(dtype)), is_signed_(IsSigned(dtype)) {}
  LAZULI_ATTRS(bytes_, is_signed_);
  int bytes() const { return bytes_; }
  bool is_signed() const { return is_signed_; }
  // A number that int64_t has not is the largest that it has: behind the end of every array.
  int64_t Read(const std::byte* at) const {
    switch (bytes_) {
      case 1:
        return is_signed_ ? int64_t{Load<int8_t>(at)} : int64_t{Load<uint8_t>(at)};
      case 2:
        return is_signed_ ? int64_t{Load<int16_t>(at)} : int64_t{Load<uint16_t>(at)};
      case 4:
        return is_signed_ ? int64_t{Load<int32_t>(at)} : int64_t{Load<uint32_t>(at)};
      default:
        if (is_signed_) return Load<int64_t>(at);
        return static_cast<int64_t>(
            std::min<uint64_t>(Load<uint64_t>(at), std::numeric_limits<int64_t>::max()));
    }
  }

 private:
  template <class T>
  static T Load(const std::byte* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  int bytes_ = 8;
  bool is_signed_ = true;
};

}  // namespace lazuli::cpu
