#include "lazy/ops/elementwise/elementwise.h"

#include <algorithm>

#include "ir/hlo/shapes/shape_inference.h"
#include "ir/support/wrong_type.h"
#include "lazy/ops/core/default_type.h"

namespace lazuli::lazy {
namespace {

// In gradients of binary.def and unary.def: no gradient flows.
constexpr struct NoFlow {
} kZero;

// Likewise: dy is divided by this.
struct Over {
  Tensor divisor;
};

Tensors Scaled(const Tensor&, NoFlow) { return {Tensor()}; }
Tensors Scaled(const Tensor& g, double factor) { return {factor == -1.0 ? -g : g * factor}; }
Tensors Scaled(const Tensor& g, const Tensor& factor) { return {g * factor}; }
Tensors Scaled(const Tensor& g, const Over& over) { return {g / over.divisor}; }

// What the gradients of floats compute with: integers do not wrap there.
// Complex operands are conjugates: as the gradients are written with real coefficients, so are their
// factors. Undefined if it was not saved.
Tensor BesideGradient(const Tensor& x, const Tensor& g) {
  if (!x.defined()) return x;
  if (IsComplex(x.dtype())) [[unlikely]]
    return Conj(x);
  return IsFloat(x.dtype()) ? x : To(x, g.dtype());
}

Tensor ForOperand(const Tensor& g, const Shape& shape) { return SumToShape(g, shape); }
Tensor ForOperand(NoFlow, const Shape&) { return {}; }

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

// What an op that computes in `dtype` takes, for its message.
std::string_view AcceptedTypes(Accepts accepts, lowering::Opcode opcode) {
  switch (accepts) {
    case Accepts::kBits:
      return "pred or integers";
    case Accepts::kInteger:
      return "integers";
    case Accepts::kWhole:
      return "integers or floats";
    default:
      return hlo::AcceptedTypes(opcode);
  }
}

// HLO takes differences and powers of pred, which are likelier a mistake.
absl::Status CheckNotOfPred(lowering::Opcode opcode, DType dtype) {
  using lowering::Opcode;
  if (dtype != DType::kPred) return absl::OkStatus();
  if (opcode == Opcode::kSubtract || opcode == Opcode::kNegate)
    return WrongType("takes no pred; logical_xor, logical_not or ^ and ~ may be meant");
  if (opcode == Opcode::kPower)
    return Unimplemented("is not implemented for pred; convert one with to()");
  return absl::OkStatus();
}

// A difference takes no operand of pred, a power not two.
absl::Status CheckNotOfPred(lowering::Opcode opcode, DType x, DType y) {
  const bool one_is_enough = opcode == lowering::Opcode::kSubtract;
  const bool refused = one_is_enough ? x == DType::kPred || y == DType::kPred
                                     : x == DType::kPred && y == DType::kPred;
  return refused ? CheckNotOfPred(opcode, DType::kPred) : absl::OkStatus();
}

// Whether the op computes in `dtype`, so that the call fails and not the run.
absl::Status CheckType(Accepts accepts, lowering::Opcode opcode, DType dtype) {
  const bool whole = accepts == Accepts::kWhole && IsIntegral(dtype);
  LAZULI_RETURN_IF_ERROR(CheckNotOfPred(opcode, dtype));
  const bool refused = accepts == Accepts::kInteger && !IsIntegral(dtype);
  if (whole || (!refused && (hlo::Accepts(opcode, dtype) || IsUnsignedMagnitude(opcode, dtype))))
    return absl::OkStatus();
  return WrongType("takes ", AcceptedTypes(accepts, opcode), ", not ", DTypeText(dtype));
}

// Promote() for an operand that has dims beside one of rank 0, as torch defines it: the dtype of
// the dims stays unless the other is of a higher category (pred, integers, floats, complex).
std::optional<DType> PromoteRankZero(DType dims, DType rank_zero) {
  if (IsComplex(dims)) return dims;
  if (IsFloat(dims)) {
    if (!IsComplex(rank_zero)) return dims;
    return dims == DType::kF64 ? DType::kC128 : DType::kC64;
  }
  if (IsComplex(rank_zero)) return rank_zero;
  const bool higher = IsFloat(rank_zero);
  return dims == DType::kPred || higher ? Promote(dims, rank_zero) : dims;
}

// What an op that takes operands of two dtypes computes in.
absl::StatusOr<DType> ComputeType(Accepts accepts, const Shape& x, const Shape& y) {
  if (accepts == Accepts::kTruth) return DType::kPred;
  LAZULI_ASSIGN_OR_RETURN(const DType common, CommonType(x, y));
  return ComputeType(accepts, common);
}

// Whether one of the operands is a wider float than the other, of 16 bits, which says the dtype.
bool IsBesideNarrow(const Shape& x, const Shape& y) {
  if ((x.rank() == 0) == (y.rank() == 0)) return false;
  const DType dims = x.rank() == 0 ? y.dtype() : x.dtype();
  const DType rank_zero = x.rank() == 0 ? x.dtype() : y.dtype();
  return IsNarrow(dims) && (rank_zero == DType::kF32 || rank_zero == DType::kF64);
}

// x in the dtype that ComputeType() gives.
lowering::Op Computed(Accepts accepts, lowering::Op x, DType dtype) {
  lowering::Builder& b = *x.builder();
  if (accepts != Accepts::kTruth || x.dtype() == DType::kPred) return b.Convert(x, dtype);
  return b.Compare(hlo::ComparisonDirection::kNe, x, b.ZerosLike(x));
}

lowering::Op Compare(hlo::ComparisonDirection direction, lowering::Op x, double y) {
  lowering::Builder& b = *x.builder();
  return b.Compare(direction, x, b.Full(x.shape(), y));
}
lowering::Op IsNegative(lowering::Op x) { return Compare(hlo::ComparisonDirection::kLt, x, 0); }
lowering::Op IsNotZero(lowering::Op x) { return Compare(hlo::ComparisonDirection::kNe, x, 0); }

// Fails the run where an integer x, which has the dims of the result, would be divided by 0. Asks
// the divisor before it is stretched.
void CheckDivisor(lowering::LoweringContext& c, std::string_view op, lowering::Op x,
                  lowering::Op y) {
  if (!IsIntegral(x.dtype()) || x.shape().num_elements() == 0) return;
  y = c.builder.Convert(y, x.dtype());
  c.CheckNone(Compare(hlo::ComparisonDirection::kEq, y, 0), y,
              {std::string(op), "an integer is divided by ", ""});
}

// Whether a remainder with the sign of x, which is not 0, has another sign than y.
lowering::Op OnOtherSide(lowering::Op rest, lowering::Op y) {
  lowering::Builder& b = *rest.builder();
  return b.Binary(lowering::Opcode::kAnd, IsNotZero(rest),
                  b.Compare(hlo::ComparisonDirection::kNe, IsNegative(rest), IsNegative(y)));
}

lowering::Op FloorDividedIntegers(lowering::Op x, lowering::Op y) {
  lowering::Builder& b = *x.builder();
  const lowering::Op quotient = b.DividedBy(x, y);  // towards 0
  if (IsUnsigned(x.dtype())) return quotient;
  const lowering::Op rest = b.Minus(x, b.Times(quotient, y));
  return b.Select(OnOtherSide(rest, y), b.Minus(quotient, b.Full(x.shape(), 1)), quotient);
}

// As Python defines it, from the exact remainder, so that no rounding of x / y steps over a whole
// number; but x / 0 is infinite or NaN.
lowering::Op FloorDividedFloats(lowering::Op x, lowering::Op y) {
  using enum lowering::Opcode;
  lowering::Builder& b = *x.builder();
  const auto number = [&](double v) { return b.Full(x.shape(), v); };
  const lowering::Op ratio = b.DividedBy(x, y), rest = b.Binary(kRemainder, x, y);
  // Whole but for rounding.
  lowering::Op times = b.DividedBy(b.Minus(x, rest), y);
  times = b.Select(OnOtherSide(rest, y), b.Minus(times, number(1)), times);
  const lowering::Op below = b.Unary(kFloor, times);
  const lowering::Op above = Compare(hlo::ComparisonDirection::kGt, b.Minus(times, below), 0.5);
  const lowering::Op nearest = b.Select(above, b.Plus(below, number(1)), below);
  const lowering::Op signed_zero = b.Times(ratio, number(0));
  return b.Select(IsNotZero(y), b.Select(IsNotZero(times), nearest, signed_zero), ratio);
}

}  // namespace

absl::StatusOr<DType> CommonType(const Shape& x, const Shape& y) {
  if (x.dtype() == y.dtype()) return x.dtype();
  const bool mixed = (x.rank() == 0) != (y.rank() == 0);
  const std::optional<DType> common = !mixed          ? Promote(x.dtype(), y.dtype())
                                      : y.rank() == 0 ? PromoteRankZero(x.dtype(), y.dtype())
                                                      : PromoteRankZero(y.dtype(), x.dtype());
  if (!common)
    return WrongType("dtypes of ", x, " and ", y, " have no common type; convert one with to()");
  return *common;
}

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
  LAZULI_ASSIGN_OR_RETURN(const DType dtype, ComputeType(accepts, x, y));
  LAZULI_RETURN_IF_ERROR(CheckType(accepts, opcode, dtype));
  LAZULI_RETURN_IF_ERROR(CheckNotOfPred(opcode, x.dtype(), y.dtype()));
  if (SameDims(x, y) || y.rank() == 0) return Shape(dtype, x.dims());
  LAZULI_ASSIGN_OR_RETURN(const Dims dims, BroadcastDims(x, y));
  return Shape::Make(dtype, dims);
}

absl::StatusOr<Shape> CompareShape(hlo::ComparisonDirection direction, const Shape& x,
                                   const Shape& y) {
  LAZULI_ASSIGN_OR_RETURN(Shape shape,
                          BinaryShape(Accepts::kReal, lowering::Opcode::kCompare, x, y));
  if (IsComplex(shape.dtype()) && direction != hlo::ComparisonDirection::kEq &&
      direction != hlo::ComparisonDirection::kNe)
    return WrongType("complex numbers have no order: ", x, " and ", y);
  shape.set_dtype(DType::kPred);
  return shape;
}

lowering::Op Prepare(Accepts accepts, lowering::Op x) {
  return Computed(accepts, x, ComputeType(accepts, x.dtype()));
}

std::pair<lowering::Op, lowering::Op> Prepare(Accepts accepts, lowering::Op x, lowering::Op y) {
  lowering::Builder& b = *x.builder();
  const absl::StatusOr<DType> dtype = ComputeType(accepts, x.shape(), y.shape());
  if (!dtype.ok()) return {b.Error(dtype.status()), b.Error(dtype.status())};
  return b.BroadcastTogether(Computed(accepts, x, *dtype), Computed(accepts, y, *dtype));
}

lowering::Op LowerBinary(lowering::LoweringContext& c, std::string_view op, Accepts accepts,
                         lowering::Opcode opcode, lowering::Op x, lowering::Op y) {
  if (TakesUnrounded(opcode) && IsBesideNarrow(x.shape(), y.shape())) {
    lowering::Builder& b = c.builder;
    const DType narrow = x.shape().rank() == 0 ? y.dtype() : x.dtype();
    auto [l, r] = b.BroadcastTogether(b.Convert(x, DType::kF32), b.Convert(y, DType::kF32));
    return b.Convert(b.Binary(opcode, l, r), narrow);
  }
  auto [l, r] = Prepare(accepts, x, y);
  if (absl::Status s = CheckNotOfPred(opcode, x.dtype(), y.dtype()); !s.ok())
    return c.builder.Error(std::move(s));
  if (opcode == lowering::Opcode::kRemainder) CheckDivisor(c, op, l, y);
  if (opcode == lowering::Opcode::kShiftRightArithmetic && IsUnsigned(l.dtype()))
    opcode = lowering::Opcode::kShiftRightLogical;
  return c.builder.Binary(opcode, l, r);
}

lowering::Op LowerUnary(lowering::Builder& b, lowering::Opcode opcode, lowering::Op x) {
  if (absl::Status s = CheckNotOfPred(opcode, x.dtype()); !s.ok()) return b.Error(std::move(s));
  const bool rounds = opcode == lowering::Opcode::kFloor || opcode == lowering::Opcode::kCeil ||
                      opcode == lowering::Opcode::kRoundNearestEven;
  if (rounds && IsIntegral(x.dtype())) return x;
  if (opcode == lowering::Opcode::kSign && IsFloat(x.dtype())) {
    const lowering::Op number = b.Compare(hlo::ComparisonDirection::kEq, x, x);
    return b.Select(number, b.Unary(opcode, x), b.ZerosLike(x));  // NaN has no sign
  }
  if (!IsUnsignedMagnitude(opcode, x.dtype())) return b.Unary(opcode, x);
  if (opcode == lowering::Opcode::kAbs) return x;
  return b.Convert(b.Compare(hlo::ComparisonDirection::kNe, x, b.ZerosLike(x)), x.dtype());
}

// --- gradients of the rows
#define LAZULI_UNARY(struct_name, function, public_name, opcode, accepts, saves, gradient, doc)  \
  Tensors struct_name::Vjp([[maybe_unused]] const Saved& s, [[maybe_unused]] const Tensor& dy)   \
      const {                                                                                    \
    [[maybe_unused]] const Tensor x = kSaves.inputs != 0 ? BesideGradient(s.x(), dy) : Tensor(); \
    [[maybe_unused]] const Tensor y = kSaves.outputs != 0 ? Conj(s.y()) : Tensor();              \
    return Scaled(dy, gradient);                                                                 \
  }
#include "lazy/ops/functions/unary.def"
#undef LAZULI_UNARY

#define LAZULI_BINARY(struct_name, function, public_name, opcode, accepts, saves, dx, dy, doc) \
  Tensors struct_name::Vjp(const Saved& s, [[maybe_unused]] const Tensor& g) const {           \
    [[maybe_unused]] const Tensor x =                                                          \
        (kSaves.inputs & 1) != 0 ? BesideGradient(s.x(0), g) : Tensor();                       \
    [[maybe_unused]] const Tensor y =                                                          \
        (kSaves.inputs & 2) != 0 ? BesideGradient(s.x(1), g) : Tensor();                       \
    [[maybe_unused]] const Tensor z = kSaves.outputs != 0 ? Conj(s.y()) : Tensor();            \
    Tensors grads(2);                                                                          \
    if (s.needs(0)) grads[0] = ForOperand(dx, s.shape(0));                                     \
    if (s.needs(1)) grads[1] = ForOperand(dy, s.shape(1));                                     \
    return grads;                                                                              \
  }
#include "lazy/ops/functions/binary.def"
#undef LAZULI_BINARY

lowering::Op RemainderOp::Lower(lowering::LoweringContext& c, lowering::Op x,
                                lowering::Op y) const {
  lowering::Builder& b = c.builder;
  auto [l, r] = Prepare(Accepts::kReal, x, y);
  CheckDivisor(c, kName, l, y);
  const lowering::Op rest = b.Binary(lowering::Opcode::kRemainder, l, r);
  return IsUnsigned(l.dtype()) ? rest : b.Select(OnOtherSide(rest, r), b.Plus(rest, r), rest);
}
Tensors RemainderOp::Vjp(const Saved& s, const Tensor& g) const {
  Tensors grads(2);
  if (s.needs(0)) grads[0] = SumToShape(g, s.shape(0));
  if (s.needs(1)) grads[1] = SumToShape(-(g * FloorDivide(s.x(0), s.x(1))), s.shape(1));
  return grads;
}

lowering::Op FloorDivideOp::Lower(lowering::LoweringContext& c, lowering::Op x,
                                  lowering::Op y) const {
  auto [l, r] = Prepare(Accepts::kReal, x, y);
  const DType dtype = l.dtype();
  CheckDivisor(c, kName, l, y);
  if (IsIntegral(dtype)) return FloorDividedIntegers(l, r);
  // Floats of 16 bits would round in between.
  const DType wide = IsFloat(dtype) && ByteWidth(dtype) < 4 ? DType::kF32 : dtype;
  lowering::Builder& b = c.builder;
  return b.Convert(FloorDividedFloats(b.Convert(l, wide), b.Convert(r, wide)), dtype);
}
Tensors FloorDivideOp::Vjp(const Saved&, const Tensor&) const { return Tensors(2); }

Tensors ReluOp::Vjp(const Saved& s, const Tensor& dy) const {
  return {Where(Le(s.y(), Constant(0, dy.dtype())), Constant(0, dy.dtype()), dy)};
}

lowering::Op WhereOp::Lower(lowering::Builder& b, lowering::Op condition, lowering::Op on_true,
                            lowering::Op on_false) const {
  if (condition.dtype() != DType::kPred)
    return b.Error(WrongType("condition must be pred, is ", condition.shape()));
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
  return {dy * (PowNumber(Conj(s.x()), exponent - 1) * exponent)};
}

lowering::Op PowIntegerOp::Lower(lowering::Builder& b, lowering::Op x) const {
  if (exponent < 0) return b.Error(InvalidArgument("an integer to the power ", exponent));
  lowering::Op power;  // of the exponent's lower digits
  for (int64_t n = exponent; n != 0; n >>= 1) {
    if ((n & 1) != 0) power = power.valid() ? b.Times(power, x) : x;
    if (n > 1) x = b.Times(x, x);
  }
  return power.valid() ? power : b.Full(x.shape(), 1);
}

namespace {

// --- functions
// Integers that a function of floats takes where the default is no f32, which ops make of them.
bool NeedsDefault(Accepts accepts, const Operand& x) {
  if (accepts != Accepts::kFloat || DefaultFloat() == DType::kF32) return false;
  if (x.tensor() != nullptr && !x.tensor()->defined()) return false;  // which is refused later
  return !IsFloat(x.shape().dtype()) && !IsComplex(x.shape().dtype());
}
// The operand in the default dtype. A number goes to the device of the tensor beside it.
Tensor InDefault(const Operand& x, const Tensor& beside) {
  return To(x.tensor() != nullptr ? *x.tensor() : Full({}, x.number(), beside.device()),
            DefaultFloat());
}

}  // namespace

#define LAZULI_UNARY(struct_name, function, public_name, opcode, accepts, ...)   \
  Tensor function(const Operand& x) {                                            \
    if (NeedsDefault(Accepts::accepts, x) && x.tensor() != nullptr) [[unlikely]] \
      return Record(struct_name{}, InDefault(x, *x.tensor()));                   \
    return Record(struct_name{}, x);                                             \
  }
#include "lazy/ops/functions/unary.def"
#undef LAZULI_UNARY
#define LAZULI_BINARY(struct_name, function, public_name, opcode, accepts, ...)                \
  Tensor function(const Operand& x, const Operand& y) {                                        \
    if (NeedsDefault(Accepts::accepts, x) && NeedsDefault(Accepts::accepts, y)) [[unlikely]] { \
      const Tensor* const tensor = x.tensor() != nullptr ? x.tensor() : y.tensor();            \
      if (tensor != nullptr)                                                                   \
        return Record(struct_name{}, InDefault(x, *tensor), InDefault(y, *tensor));            \
    }                                                                                          \
    return Record(struct_name{}, x, y);                                                        \
  }
#include "lazy/ops/functions/binary.def"
#undef LAZULI_BINARY
#define LAZULI_COMPARE(struct_name, function, ...) \
  Tensor function(const Operand& x, const Operand& y) { return Record(struct_name{}, x, y); }
#include "lazy/ops/functions/compare.def"
#undef LAZULI_COMPARE

Tensor Remainder(const Operand& x, const Operand& y) { return Record(RemainderOp{}, x, y); }
Tensor FloorDivide(const Operand& x, const Operand& y) { return Record(FloorDivideOp{}, x, y); }
Tensor Relu(const Tensor& x) { return Record(ReluOp{}, x); }
Tensor Clone(const Tensor& x) { return Record(CloneOp{}, x); }
Tensor Where(const Operand& condition, const Operand& on_true, const Operand& on_false) {
  return Record(WhereOp{}, condition, on_true, on_false);
}
Tensor ClampBetween(const Tensor& x, const Operand& low, const Operand& high) {
  return Record(ClampOp{}, x, low, high);
}
Tensor PowNumber(const Tensor& x, const Number& exponent) {
  if (exponent.is_complex()) return Pow(x, exponent.Beside(x));
  const DType dtype = exponent.TypeBeside(x.dtype());
  if (!IsIntegral(dtype) && dtype != DType::kPred)
    return Record(PowNumberOp{exponent.as_double()}, dtype == DType::kF32 ? x : To(x, dtype));
  const std::optional<int64_t> power = exponent.as_integer();
  if (!power || *power < 0) {
    ThrowRecordError("pow", InvalidArgument("the power of an integer must be in [0, 2^63), is ",
                                            exponent.Text(), "; convert x to floats"));
  }
  return dtype == DType::kPred && *power == 1 ? x : Record(PowIntegerOp{*power}, To(x, dtype));
}
Tensor To(const Tensor& x, DType dtype) {
  return x.dtype() == dtype ? x : Record(ToDTypeOp{dtype}, x);
}

Value Constant(double value, DType dtype) {
  return {MakeIntrusive<OpNode<ConstantOp>>(ConstantOp{value, dtype}, Shapes{Shape(dtype)},
                                            CurrentSite()),
          0};
}

Tensor Square(const Tensor& x) { return PowNumber(x, 2); }
Tensor Reciprocal(const Tensor& x) { return PowNumber(x, -1.0); }

Tensor Floating(const Tensor& x) {
  return IsFloat(x.dtype()) || IsComplex(x.dtype()) ? x : To(x, DefaultFloat());
}

}  // namespace lazuli::lazy
