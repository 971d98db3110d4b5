#include "lazy/ops/elementwise.h"

#include <algorithm>

#include "ir/hlo/shape_inference.h"

namespace lazuli::lazy {
namespace {

// In gradients of binary.def and unary.def: no gradient flows.
constexpr struct Zero {
} kZero;

// Likewise: dy is divided by this.
struct Over {
  Tensor divisor;
};

Tensors Scaled(const Tensor&, Zero) { return {Tensor()}; }
Tensors Scaled(const Tensor& g, double factor) { return {factor == -1.0 ? -g : g * factor}; }
Tensors Scaled(const Tensor& g, const Tensor& factor) { return {g * factor}; }
Tensors Scaled(const Tensor& g, const Over& over) { return {g / over.divisor}; }

Tensor ForOperand(const Tensor& g, const Shape& shape) { return SumToShape(g, shape); }
Tensor ForOperand(Zero, const Shape&) { return {}; }

// An operand's part of g: none where the other one was chosen, half where both are equal. Where one
// is NaN, both get g.
Tensor Share(const Tensor& g, const Tensor& loses, const Tensor& equal) {
  return Where(loses, Constant(0, g.dtype()), Where(equal, g * 0.5, g));
}

// value / (x^2 + y^2), but 0 where that is 0.
Tensor OverSquares(const Tensor& value, const Tensor& x, const Tensor& y) {
  const Tensor squares = x * x + y * y;
  const Tensor none = Eq(squares, Constant(0, squares.dtype()));
  const Tensor divisor = Where(none, Constant(1, squares.dtype()), squares);
  return Where(none, Constant(0, squares.dtype()), value / divisor);
}

// `value` but 0 where `zero` holds: where a factor of 0 would meet an infinite one.
Tensor OrZero(const Tensor& zero, const Tensor& value) {
  return Where(zero, Constant(0, value.dtype()), value);
}

// abs and sign of unsigned integers, which HLO does not take: LowerUnary.
bool IsUnsignedMagnitude(lowering::Opcode opcode, DType dtype) {
  return (IsUnsigned(dtype) || dtype == DType::kPred) &&
         (opcode == lowering::Opcode::kAbs || opcode == lowering::Opcode::kSign);
}

// Whether the opcode computes in `dtype`, so that the call fails and not the run.
absl::Status CheckType(Accepts accepts, lowering::Opcode opcode, DType dtype) {
  if (hlo::Accepts(opcode, dtype) || IsUnsignedMagnitude(opcode, dtype)) return absl::OkStatus();
  return InvalidArgument(
      "takes ", accepts == Accepts::kBits ? "pred or integers" : hlo::AcceptedTypes(opcode),
      ", not ", DTypeText(dtype));
}

DType ComputeType(Accepts accepts, DType dtype) {
  return accepts == Accepts::kFloat && !IsFloat(dtype) && !IsComplex(dtype) ? DType::kF32 : dtype;
}

absl::StatusOr<DType> CommonType(const Shape& x, const Shape& y) {
  if (x.dtype() == y.dtype()) return x.dtype();
  const std::optional<DType> common = Promote(x.dtype(), y.dtype());
  if (!common)
    return InvalidArgument("dtypes of ", x, " and ", y,
                           " have no common type; convert one with to()");
  return *common;
}

}  // namespace

absl::StatusOr<Dims> BroadcastDims(const Shape& x, const Shape& y) {
  const int64_t rank = std::max(x.rank(), y.rank());
  Dims dims(static_cast<std::size_t>(rank));
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t xi = i - (rank - x.rank()), yi = i - (rank - y.rank());
    const int64_t a = xi < 0 ? 1 : x.dim(xi), b = yi < 0 ? 1 : y.dim(yi);
    if (a != b && a != 1 && b != 1)
      return InvalidArgument("shapes ", x, " and ", y, " do not broadcast");
    dims[static_cast<std::size_t>(i)] = a == 1 ? b : a;
  }
  return dims;
}

absl::StatusOr<Shape> UnaryShape(Accepts accepts, lowering::Opcode opcode, const Shape& x) {
  const DType dtype = ComputeType(accepts, x.dtype());
  LAZULI_RETURN_IF_ERROR(CheckType(accepts, opcode, dtype));
  return Shape(opcode == lowering::Opcode::kAbs ? hlo::PartType(dtype) : dtype, x.dims());
}

absl::StatusOr<Shape> BinaryShape(Accepts accepts, lowering::Opcode opcode, const Shape& x,
                                  const Shape& y) {
  LAZULI_ASSIGN_OR_RETURN(const DType common, CommonType(x, y));
  const DType dtype = ComputeType(accepts, common);
  LAZULI_RETURN_IF_ERROR(CheckType(accepts, opcode, dtype));
  if (SameDims(x, y) || y.rank() == 0) return Shape(dtype, x.dims());
  LAZULI_ASSIGN_OR_RETURN(const Dims dims, BroadcastDims(x, y));
  return Shape(dtype, dims);
}

absl::StatusOr<Shape> CompareShape(hlo::ComparisonDirection direction, const Shape& x,
                                   const Shape& y) {
  LAZULI_ASSIGN_OR_RETURN(Shape shape,
                          BinaryShape(Accepts::kReal, lowering::Opcode::kCompare, x, y));
  if (IsComplex(shape.dtype()) && direction != hlo::ComparisonDirection::kEq &&
      direction != hlo::ComparisonDirection::kNe)
    return InvalidArgument("complex numbers have no order: ", x, " and ", y);
  shape.set_dtype(DType::kPred);
  return shape;
}

lowering::Op Prepare(Accepts accepts, lowering::Op x) {
  return x.builder()->Convert(x, ComputeType(accepts, x.dtype()));
}

std::pair<lowering::Op, lowering::Op> Prepare(Accepts accepts, lowering::Op x, lowering::Op y) {
  lowering::Builder& b = *x.builder();
  absl::StatusOr<DType> common = CommonType(x.shape(), y.shape());
  if (!common.ok()) return {b.Error(common.status()), b.Error(common.status())};
  const DType dtype = ComputeType(accepts, *common);
  return b.BroadcastTogether(b.Convert(x, dtype), b.Convert(y, dtype));
}

lowering::Op LowerUnary(lowering::Builder& b, lowering::Opcode opcode, lowering::Op x) {
  if (opcode == lowering::Opcode::kSign && IsFloat(x.dtype())) {
    const lowering::Op number = b.Compare(hlo::ComparisonDirection::kEq, x, x);
    return b.Select(number, b.Unary(opcode, x), b.ZerosLike(x));  // NaN has no sign
  }
  if (!IsUnsignedMagnitude(opcode, x.dtype())) return b.Unary(opcode, x);
  if (opcode == lowering::Opcode::kAbs) return x;
  return b.Convert(b.Compare(hlo::ComparisonDirection::kNe, x, b.ZerosLike(x)), x.dtype());
}

// --- gradients of the rows
#define LAZULI_UNARY(struct_name, function, public_name, opcode, accepts, saves, gradient, doc) \
  Tensors struct_name::Vjp([[maybe_unused]] const Saved& s, [[maybe_unused]] const Tensor& dy)  \
      const {                                                                                   \
    [[maybe_unused]] const Tensor x = kSaves.inputs != 0 ? s.x() : Tensor();                    \
    [[maybe_unused]] const Tensor y = kSaves.outputs != 0 ? s.y() : Tensor();                   \
    return Scaled(dy, gradient);                                                                \
  }
#include "lazy/ops/unary.def"
#undef LAZULI_UNARY

#define LAZULI_BINARY(struct_name, function, public_name, opcode, accepts, saves, dx, dy, doc) \
  Tensors struct_name::Vjp(const Saved& s, [[maybe_unused]] const Tensor& g) const {           \
    [[maybe_unused]] const Tensor x = (kSaves.inputs & 1) != 0 ? s.x(0) : Tensor();            \
    [[maybe_unused]] const Tensor y = (kSaves.inputs & 2) != 0 ? s.x(1) : Tensor();            \
    [[maybe_unused]] const Tensor z = kSaves.outputs != 0 ? s.y() : Tensor();                  \
    Tensors grads(2);                                                                          \
    if (s.needs(0)) grads[0] = ForOperand(dx, s.shape(0));                                     \
    if (s.needs(1)) grads[1] = ForOperand(dy, s.shape(1));                                     \
    return grads;                                                                              \
  }
#include "lazy/ops/binary.def"
#undef LAZULI_BINARY

Tensors ReluOp::Vjp(const Saved& s, const Tensor& dy) const {
  return {Where(Le(s.y(), Constant(0, dy.dtype())), Constant(0, dy.dtype()), dy)};
}

lowering::Op WhereOp::Lower(lowering::Builder& b, lowering::Op condition, lowering::Op on_true,
                            lowering::Op on_false) const {
  if (condition.dtype() != DType::kPred)
    return b.Error(InvalidArgument("condition must be pred, is ", condition.shape()));
  auto [x, y] = Prepare(Accepts::kReal, on_true, on_false);
  auto [c, wide] = b.BroadcastTogether(condition, x);
  return b.Select(c, b.BroadcastTo(x, c.shape().dims()), b.BroadcastTo(y, c.shape().dims()));
}

Tensors WhereOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Tensor condition = s.x(0);
  Tensors grads(3);
  if (s.needs(1)) grads[1] = SumToShape(Where(condition, dy, Constant(0, dy.dtype())), s.shape(1));
  if (s.needs(2)) grads[2] = SumToShape(Where(condition, Constant(0, dy.dtype()), dy), s.shape(2));
  return grads;
}

absl::StatusOr<Shape> ClampOp::Infer(const Shape& x, const Shape& low, const Shape& high) const {
  if (low.rank() != 0 || high.rank() != 0)
    return InvalidArgument("bounds must be numbers, are ", low, " and ", high);
  return x;
}

lowering::Op ClampOp::Lower(lowering::Builder& b, lowering::Op x, lowering::Op low,
                            lowering::Op high) const {
  return b.Clamp(b.Convert(low, x.dtype()), x, b.Convert(high, x.dtype()));
}

Tensors ClampOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Tensor x = s.x(0);
  const Tensor inside = LogicalAnd(Ge(x, s.x(1)), Le(x, s.x(2)));
  return {Where(inside, dy, Constant(0, dy.dtype())), Tensor(), Tensor()};
}

lowering::Op PowNumberOp::Lower(lowering::Builder& b, lowering::Op x) const {
  x = Prepare(Accepts::kFloat, x);
  // The exponents people write become what they would have written by hand; the choice is part of
  // the program's structure.
  if (exponent == 2) return b.Times(x, x);
  if (exponent == 3) return b.Times(b.Times(x, x), x);
  if (exponent == 1) return x;
  if (exponent == 0.5) return b.Unary(lowering::Opcode::kSqrt, x);
  if (exponent == -0.5) return b.Unary(lowering::Opcode::kRsqrt, x);
  if (exponent == -1) return b.DividedBy(b.Full(x.shape(), 1), x);
  return b.Binary(lowering::Opcode::kPower, x, b.Full(x.shape(), exponent));
}

Tensors PowNumberOp::Vjp(const Saved& s, const Tensor& dy) const {
  if (exponent == 0) return {FullConstant(dy.shape(), 0, dy.device())};
  return {dy * (PowNumber(s.x(), exponent - 1) * exponent)};
}

// --- functions
#define LAZULI_UNARY(struct_name, function, ...) \
  Tensor function(const Operand& x) { return Record(struct_name{}, x); }
#include "lazy/ops/unary.def"
#undef LAZULI_UNARY
#define LAZULI_BINARY(struct_name, function, ...) \
  Tensor function(const Operand& x, const Operand& y) { return Record(struct_name{}, x, y); }
#include "lazy/ops/binary.def"
#undef LAZULI_BINARY
#define LAZULI_COMPARE(struct_name, function, ...) \
  Tensor function(const Operand& x, const Operand& y) { return Record(struct_name{}, x, y); }
#include "lazy/ops/compare.def"
#undef LAZULI_COMPARE

Tensor Relu(const Tensor& x) { return Record(ReluOp{}, x); }
Tensor Clone(const Tensor& x) { return Record(CloneOp{}, x); }
Tensor Where(const Operand& condition, const Operand& on_true, const Operand& on_false) {
  return Record(WhereOp{}, condition, on_true, on_false);
}
Tensor Clamp(const Tensor& x, const Operand& low, const Operand& high) {
  return Record(ClampOp{}, x, low, high);
}
Tensor PowNumber(const Tensor& x, double exponent) { return Record(PowNumberOp{exponent}, x); }
Tensor To(const Tensor& x, DType dtype) {
  return x.dtype() == dtype ? x : Record(ToDTypeOp{dtype}, x);
}

Value Constant(double value, DType dtype) {
  return {MakeIntrusive<OpNode<ConstantOp>>(ConstantOp{value, dtype}, Shapes{Shape(dtype)},
                                            CurrentSite()),
          0};
}

}  // namespace lazuli::lazy
