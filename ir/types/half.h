// Host types of the 16-bit floats (Eigen's) and of the 8- and 4-bit floats (bits only; converted
// through float).
#pragma once

#include <cstdint>

#include <Eigen/Core>

#include "ir/support/namespaces.h"

namespace lazuli::ir {

using half = Eigen::half;
using bfloat16 = Eigen::bfloat16;

// One byte of an 8-bit or 4-bit float; `kFormat` only makes each format a type of its own (rows of
// dtype.def).
template <int kFormat>
struct Float8 {
  uint8_t bits = 0;
  Float8() = default;
  explicit Float8(float value);  // rounds to nearest even, saturating as the format says
  explicit operator float() const;
  friend bool operator==(Float8 a, Float8 b) {
    return static_cast<float>(a) == static_cast<float>(b);
  }
};

}  // namespace lazuli::ir
