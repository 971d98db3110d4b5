// Ops on the bits of floats: the sign bit, the next float, mantissa and exponent.
#pragma once

#include "lazy/ops/elementwise/elementwise.h"

namespace lazuli::lazy {

// Whether the sign bit is set, also of zeros and NaN.
struct SignBitOp {
  LAZULI_OP("signbit", "aten::signbit");
  static constexpr OpDoc kDoc{"Whether the sign bit of each element is set.", {"x"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
};

struct NextAfterOp {
  LAZULI_OP("nextafter", "aten::nextafter");
  static constexpr OpDoc kDoc{"The float after x in the direction of y.", {"x", "y"}};
  static constexpr Saves kSaves = kSaveXY;
  lowering::Op Lower(lowering::Builder& b, lowering::Op x, lowering::Op y) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

// x as a mantissa of a size in [0.5, 1) times 2 to an exponent.
struct FrexpOp {
  LAZULI_OP("frexp", "aten::frexp");
  static constexpr OpDoc kDoc{
      "Mantissa and exponent (s32) of each element. Zeros, infinities and NaN are their own "
      "mantissas, with exponent 0.",
      {"x"}};
  static constexpr Saves kSaves{.outputs = 2};
  std::array<lowering::Op, 2> Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, absl::Span<const Tensor> dys) const;
};

}  // namespace lazuli::lazy
