// Elementwise ops that no HLO opcode is: special functions, and bits of floats.
#pragma once

#include "lazy/ops/elementwise.h"

namespace lazuli::lazy {

// 1 - erf(x) with all its digits where erf(x) is nearly 1.
struct ErfcOp {
  LAZULI_OP("erfc", "aten::erfc");
  static constexpr OpDoc kDoc{"1 - erf(x) of each element, exact where it is small.", {"x"}};
  static constexpr Saves kSaves = kSaveX;
  absl::StatusOr<Shape> Infer(const Shape& x) const {
    return UnaryShape(Accepts::kFloat, lowering::Opcode::kErf, x);
  }
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

// erfc(x) times exp(x^2), which is a number where either alone overflows or is 0.
struct ErfcxOp {
  LAZULI_OP("erfcx", "aten::special_erfcx");
  static constexpr OpDoc kDoc{"exp(x^2) erfc(x) of each element.", {"x"}};
  static constexpr Saves kSaves{.inputs = 1, .outputs = 1};
  absl::StatusOr<Shape> Infer(const Shape& x) const {
    return UnaryShape(Accepts::kFloat, lowering::Opcode::kErf, x);
  }
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

// The inverse of erf, which Newton's method makes of an approximation.
struct ErfinvOp {
  LAZULI_OP("erfinv", "aten::erfinv");
  static constexpr OpDoc kDoc{"The number whose erf is each element; NaN beyond [-1, 1].", {"x"}};
  static constexpr Saves kSaves = kSaveResult;
  absl::StatusOr<Shape> Infer(const Shape& x) const {
    return UnaryShape(Accepts::kFloat, lowering::Opcode::kErf, x);
  }
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct LogitOp {
  LAZULI_OP("logit", "aten::logit");
  static constexpr OpDoc kDoc{"log(x / (1 - x)) of each element.", {"x"}};
  static constexpr Saves kSaves = kSaveX;
  absl::StatusOr<Shape> Infer(const Shape& x) const {
    return UnaryShape(Accepts::kFloat, lowering::Opcode::kErf, x);
  }
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

// Logarithm of |gamma|, by the approximation of Lanczos (1964).
struct LgammaOp {
  LAZULI_OP("lgamma", "aten::lgamma");
  static constexpr OpDoc kDoc{"Logarithm of the absolute value of the gamma function.", {"x"}};
  static constexpr Saves kSaves = kSaveX;
  absl::StatusOr<Shape> Infer(const Shape& x) const {
    return UnaryShape(Accepts::kFloat, lowering::Opcode::kErf, x);
  }
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

// Whether the sign bit is set, also of zeros and NaN.
struct SignBitOp {
  LAZULI_OP("signbit", "aten::signbit");
  static constexpr OpDoc kDoc{"Whether the sign bit of each element is set.", {"x"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
};

// By Euclid's algorithm.
struct GcdOp {
  LAZULI_OP("gcd", "aten::gcd");
  static constexpr OpDoc kDoc{"Greatest common divisor of integers.", {"x", "y"}};
  absl::StatusOr<Shape> Infer(const Shape& x, const Shape& y) const {
    return BinaryShape(Accepts::kInteger, lowering::Opcode::kRemainder, x, y);
  }
  lowering::Op Lower(lowering::Builder& b, lowering::Op x, lowering::Op y) const;
};

struct NextAfterOp {
  LAZULI_OP("nextafter", "aten::nextafter");
  static constexpr OpDoc kDoc{"The float after x in the direction of y.", {"x", "y"}};
  static constexpr Saves kSaves = kSaveXY;
  lowering::Op Lower(lowering::Builder& b, lowering::Op x, lowering::Op y) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

// The modified Bessel function of the first kind, of order 0 or 1; scaled: times exp(-|x|).
struct BesselIOp {
  int64_t order;
  bool scaled;
  LAZULI_OP("i0", "aten::i0", order, scaled);
  static constexpr OpDoc kDoc{"The modified Bessel function of the first kind of each element.",
                              {"x"}};
  static constexpr Saves kSaves{.inputs = 1, .outputs = 1};
  absl::StatusOr<Shape> Infer(const Shape& x) const {
    return UnaryShape(Accepts::kFloat, lowering::Opcode::kErf, x);
  }
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

// x as a mantissa of a size in [0.5, 1) times 2 to an exponent.
struct FrexpOp {
  LAZULI_OP("frexp", "aten::frexp");
  static constexpr OpDoc kDoc{
      "Mantissa and exponent (s32) of each element; of zeros, infinities and NaN themselves and 0.",
      {"x"}};
  static constexpr Saves kSaves{.outputs = 2};
  std::array<lowering::Op, 2> Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, absl::Span<const Tensor> dys) const;
};

struct HypotOp {
  LAZULI_OP("hypot", "aten::hypot");
  static constexpr OpDoc kDoc{"sqrt(x^2 + y^2), without overflow.", {"x", "y"}};
  static constexpr Saves kSaves = kSaveXYZ;
  absl::StatusOr<Shape> Infer(const Shape& x, const Shape& y) const {
    return BinaryShape(Accepts::kFloat, lowering::Opcode::kMaximum, x, y);
  }
  lowering::Op Lower(lowering::Builder& b, lowering::Op x, lowering::Op y) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

}  // namespace lazuli::lazy
