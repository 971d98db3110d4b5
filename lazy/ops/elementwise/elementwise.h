// Elementwise ops: structs that derive from the rows of unary.def, binary.def and compare.def, and
// the few with a body.
#pragma once

#include "lazy/ops/core/accepts.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

// The dtype that operands of these shapes have in common: one of rank 0 beside one that has dims
// counts only where it is of a higher category (integers, floats, complex).
absl::StatusOr<DType> CommonType(const Shape& x, const Shape& y);

// Whether the op takes what has rank 0 beside floats of 16 bits unrounded, so that 0 * 1e6 is 0.
constexpr bool TakesUnrounded(lowering::Opcode opcode) {
  using enum lowering::Opcode;
  return opcode == kAdd || opcode == kSubtract || opcode == kMultiply || opcode == kDivide;
}

// Shapes of results, with the checks of `accepts` and of the opcode.
absl::StatusOr<Shape> UnaryShape(Accepts accepts, lowering::Opcode opcode, const Shape& x);
absl::StatusOr<Shape> BinaryShape(Accepts accepts, lowering::Opcode opcode, const Shape& x,
                                  const Shape& y);
absl::StatusOr<Shape> CompareShape(hlo::ComparisonDirection direction, const Shape& x,
                                   const Shape& y);
// dims of x and y broadcast together.
absl::StatusOr<Dims> BroadcastDims(const Shape& x, const Shape& y);
// x in the dtype an op of this class computes in.
lowering::Op Prepare(Accepts accepts, lowering::Op x);
std::pair<lowering::Op, lowering::Op> Prepare(Accepts accepts, lowering::Op x, lowering::Op y);

// The opcode, or what it means where HLO does not take it (abs and sign of unsigned integers, floor
// of integers) or gives something else (the sign of NaN, which is 0).
lowering::Op LowerUnary(lowering::Builder& b, lowering::Opcode opcode, lowering::Op x);
// The opcode of prepared operands. An integer divided by 0 fails the run; a right shift of unsigned
// integers is a logical one.
lowering::Op LowerBinary(lowering::LoweringContext& c, std::string_view op, Accepts accepts,
                         lowering::Opcode opcode, lowering::Op x, lowering::Op y);

#define LAZULI_UNARY(struct_name, function, public_name, opcode, accepts, saves, gradient, doc) \
  struct struct_name {                                                                          \
    LAZULI_OP(#public_name, "aten::" #public_name);                                             \
    static constexpr OpDoc kDoc{doc, {"x"}};                                                    \
    static constexpr Saves kSaves = saves;                                                      \
    absl::StatusOr<Shape> Infer(const Shape& x) const {                                         \
      return UnaryShape(Accepts::accepts, lowering::Opcode::opcode, x);                         \
    }                                                                                           \
    lowering::Op Lower(lowering::Builder& b, lowering::Op x) const {                            \
      return LowerUnary(b, lowering::Opcode::opcode, Prepare(Accepts::accepts, x));             \
    }                                                                                           \
    Tensors Vjp(const Saved& s, const Tensor& dy) const;                                        \
  };
#include "lazy/ops/functions/unary.def"
#undef LAZULI_UNARY

#define LAZULI_BINARY(struct_name, function, public_name, opcode, accepts, saves, dx, dy, doc) \
  struct struct_name {                                                                         \
    LAZULI_OP(#public_name, "aten::" #public_name);                                            \
    static constexpr OpDoc kDoc{doc, {"x", "y"}};                                              \
    static constexpr Saves kSaves = saves;                                                     \
    static constexpr bool kChecks = lowering::Opcode::opcode == lowering::Opcode::kRemainder;  \
    absl::StatusOr<Shape> Infer(const Shape& x, const Shape& y) const {                        \
      return BinaryShape(Accepts::accepts, lowering::Opcode::opcode, x, y);                    \
    }                                                                                          \
    lowering::Op Lower(lowering::LoweringContext& c, lowering::Op x, lowering::Op y) const {   \
      return LowerBinary(c, kName, Accepts::accepts, lowering::Opcode::opcode, x, y);          \
    }                                                                                          \
    Tensors Vjp(const Saved& s, const Tensor& g) const;                                        \
  };
#include "lazy/ops/functions/binary.def"
#undef LAZULI_BINARY

#define LAZULI_COMPARE(struct_name, function, public_name, direction, doc)           \
  struct struct_name {                                                               \
    LAZULI_OP(#public_name, "aten::" #public_name);                                  \
    static constexpr OpDoc kDoc{doc, {"x", "y"}};                                    \
    absl::StatusOr<Shape> Infer(const Shape& x, const Shape& y) const {              \
      return CompareShape(hlo::ComparisonDirection::direction, x, y);                \
    }                                                                                \
    lowering::Op Lower(lowering::Builder& b, lowering::Op x, lowering::Op y) const { \
      auto [l, r] = Prepare(Accepts::kReal, x, y);                                   \
      return b.Compare(hlo::ComparisonDirection::direction, l, r);                   \
    }                                                                                \
  };
#include "lazy/ops/functions/compare.def"
#undef LAZULI_COMPARE

struct RemainderOp {
  LAZULI_OP("remainder", "aten::remainder");
  static constexpr OpDoc kDoc{
      "Remainder of x / y with the sign of y; an integer divided by 0 fails the run.", {"x", "y"}};
  static constexpr Saves kSaves = kSaveXY;
  absl::StatusOr<Shape> Infer(const Shape& x, const Shape& y) const {
    return BinaryShape(Accepts::kReal, lowering::Opcode::kRemainder, x, y);
  }
  lowering::Op Lower(lowering::LoweringContext& c, lowering::Op x, lowering::Op y) const;
  Tensors Vjp(const Saved& s, const Tensor& g) const;
};

struct FloorDivideOp {
  LAZULI_OP("floor_divide", "aten::floor_divide");
  static constexpr OpDoc kDoc{
      "x / y, rounded down: as Python's // exact for integers, of which one divided by 0 fails the "
      "run, and of floats the whole number of times that y goes into x.",
      {"x", "y"}};
  absl::StatusOr<Shape> Infer(const Shape& x, const Shape& y) const {
    return BinaryShape(Accepts::kReal, lowering::Opcode::kRemainder, x, y);
  }
  lowering::Op Lower(lowering::LoweringContext& c, lowering::Op x, lowering::Op y) const;
  Tensors Vjp(const Saved& s, const Tensor& g) const;  // none flows
};

struct ReluOp {
  LAZULI_OP("relu", "aten::relu");
  static constexpr OpDoc kDoc{"max(x, 0) of each element.", {"x"}};
  static constexpr Saves kSaves = kSaveResult;
  absl::StatusOr<Shape> Infer(const Shape& x) const {
    return UnaryShape(Accepts::kReal, lowering::Opcode::kMaximum, x);
  }
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const {
    return b.Maximum(x, b.ZerosLike(x));
  }
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct CloneOp {
  LAZULI_OP("clone", "aten::clone");
  static constexpr OpDoc kDoc{"The same elements in memory of its own.", {"x"}};
  absl::StatusOr<Shape> Infer(const Shape& x) const { return x; }
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const {
    return b.Unary(lowering::Opcode::kCopy, x);
  }
  Tensors Vjp(const Saved&, const Tensor& dy) const { return {dy}; }
};

struct WhereOp {
  LAZULI_OP("where", "aten::where");
  static constexpr OpDoc kDoc{"on_true where condition holds, else on_false.",
                              {"condition", "on_true", "on_false"}};
  static constexpr Saves kSaves = kSaveX;
  lowering::Op Lower(lowering::Builder& b, lowering::Op condition, lowering::Op on_true,
                     lowering::Op on_false) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct ClampOp {
  LAZULI_OP("clamp", "aten::clamp");
  static constexpr OpDoc kDoc{"Each element limited to [low, high].", {"x", "low", "high"}};
  static constexpr Saves kSaves{.inputs = 7};
  absl::StatusOr<Shape> Infer(const Shape& x, const Shape& low, const Shape& high) const;
  lowering::Op Lower(lowering::Builder& b, lowering::Op x, lowering::Op low,
                     lowering::Op high) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;  // of x only
};

struct PowNumberOp {
  double exponent;
  LAZULI_OP("pow", "aten::pow", exponent);
  static constexpr OpDoc kDoc{"Each element to the power of a number that is part of the program.",
                              {"x"}};
  static constexpr Saves kSaves = kSaveX;
  absl::StatusOr<Shape> Infer(const Shape& x) const {
    return UnaryShape(Accepts::kFloat, lowering::Opcode::kPower, x);
  }
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

// Of integers, by repeated squares, which wrap.
struct PowIntegerOp {
  int64_t exponent;  // not negative
  LAZULI_OP("pow", "aten::pow", exponent);
  static constexpr OpDoc kDoc{
      "Each integer to the power of a whole number that is part of the program; wraps.", {"x"}};
  absl::StatusOr<Shape> Infer(const Shape& x) const {
    return UnaryShape(Accepts::kInteger, lowering::Opcode::kMultiply, x);
  }
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
};

struct ToDTypeOp {
  DType dtype;
  LAZULI_OP("to", "aten::_to_copy", dtype);
  static constexpr OpDoc kDoc{
      "Each element converted to the dtype; floats to integers saturate, NaN becomes 0.", {"x"}};
  absl::StatusOr<Shape> Infer(const Shape& x) const { return Shape::Make(dtype, x.dims()); }
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const { return b.Convert(x, dtype); }
  Tensors Vjp(const Saved& s, const Tensor& dy) const { return {To(dy, s.shape().dtype())}; }
};

// A rank-0 constant of the program.
struct ConstantOp {
  double value;
  DType dtype;
  LAZULI_OP("constant", "prim::Constant", value, dtype);
  static constexpr OpDoc kDoc{"A number that is part of the program.", {}};
  absl::StatusOr<Shape> Infer() const { return Shape(dtype); }
  lowering::Op Lower(lowering::Builder& b) const { return b.Scalar(dtype, value); }
};

}  // namespace lazuli::lazy
