// Arithmetic. Rules for floats hold bit for bit: x + 0.0 is not x (x = -0.0), x * 0 is not 0 (NaN,
// inf, sign), x - x neither.
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "ir/evaluator/evaluator.h"
#include "lowering/passes/match.h"
#include "lowering/passes/rules/rules.h"

namespace lazuli::lowering {
namespace {

using hlo::Instruction;
using hlo::Opcode;

bool IsIeee(DType t) {
  return t == DType::kF32 || t == DType::kF64 || t == DType::kF16 || t == DType::kBF16;
}
bool IsIeee(const Instruction* i) { return IsIeee(i->shape().dtype()); }
bool IsInteger(const Instruction* i) { return IsIntegral(i->shape().dtype()); }

Instruction* Make(Rewriter& r, const Instruction* like, Opcode opcode, Instruction* x) {
  return r.Add(opcode, like->shape(), {x});
}
Instruction* Make(Rewriter& r, const Instruction* like, Opcode opcode, Instruction* x,
                  Instruction* y) {
  return r.Add(opcode, like->shape(), {x, y});
}

Instruction* ConstantRight(Instruction* i, Rewriter& r) {
  if (SplatConstant(i->operand(0)) == nullptr || SplatConstant(i->operand(1)) != nullptr)
    return nullptr;
  return Make(r, i, i->opcode(), i->operand(1), i->operand(0));
}

Instruction* AddZero(Instruction* i, Rewriter&) {
  Instruction* x;
  const bool zero = IsInteger(i) ? Match(i, m::Add(m::Op(&x), m::Scalar(0)))
                                 : IsIeee(i) && Match(i, m::Add(m::Op(&x), m::Scalar(-0.0)));
  return zero ? x : nullptr;
}

Instruction* AddNegate(Instruction* i, Rewriter& r) {
  Instruction *x, *y;
  if (!Match(i, m::Add(m::Op(&x), m::Negate(m::Op(&y))))) return nullptr;
  if (!IsIeee(i) && !IsInteger(i)) return nullptr;
  return Make(r, i, Opcode::kSubtract, x, y);
}

Instruction* SubtractZero(Instruction* i, Rewriter&) {
  Instruction* x;
  if (!IsIeee(i) && !IsInteger(i)) return nullptr;
  return Match(i, m::Subtract(m::Op(&x), m::Scalar(0.0))) ? x : nullptr;
}

Instruction* SubtractNegate(Instruction* i, Rewriter& r) {
  Instruction *x, *y;
  if (!Match(i, m::Subtract(m::Op(&x), m::Negate(m::Op(&y))))) return nullptr;
  if (!IsIeee(i) && !IsInteger(i)) return nullptr;
  return Make(r, i, Opcode::kAdd, x, y);
}

Instruction* SubtractSelfInt(Instruction* i, Rewriter& r) {
  return IsInteger(i) && i->operand(0) == i->operand(1) ? r.Full(i->shape(), 0) : nullptr;
}

Instruction* MultiplyOne(Instruction* i, Rewriter&) {
  Instruction* x;
  return Match(i, m::Multiply(m::Op(&x), m::Scalar(1))) ? x : nullptr;
}

Instruction* MultiplyMinusOne(Instruction* i, Rewriter& r) {
  Instruction* x;
  if (!Match(i, m::Multiply(m::Op(&x), m::Scalar(-1)))) return nullptr;
  return Make(r, i, Opcode::kNegate, x);
}

Instruction* MultiplyZeroInt(Instruction* i, Rewriter& r) {
  if (!IsInteger(i) || !Match(i, m::Multiply(m::Op(), m::Scalar(0)))) return nullptr;
  return r.Full(i->shape(), 0);
}

Instruction* MultiplyNegates(Instruction* i, Rewriter& r) {
  Instruction *x, *y;
  if (!Match(i, m::Multiply(m::Negate(m::Op(&x)), m::Negate(m::Op(&y))))) return nullptr;
  return IsIeee(i) || IsInteger(i) ? Make(r, i, Opcode::kMultiply, x, y) : nullptr;
}

Instruction* FirstElement(const Instruction* constant, Rewriter& r) {
  const DType dtype = constant->shape().dtype();
  Literal element{Shape(dtype)};
  std::memcpy(element.mutable_raw(), constant->literal().raw(),
              static_cast<std::size_t>(ByteWidth(dtype)));
  return r.AddConstant(std::move(element));
}

// (x op c) op d with op associative: wrapping integers only. The constants become one at once: as
// an instruction their sum would be no constant yet, and might go to the left again.
Instruction* AssociateConstantsInt(Instruction* i, Rewriter& r) {
  if (!IsInteger(i) || i->operand(0)->opcode() != i->opcode()) return nullptr;
  Instruction* const inner = i->operand(0);
  const Instruction *const c = SplatConstant(inner->operand(1)), *const d =
                                                                     SplatConstant(i->operand(1));
  if (c == nullptr || d == nullptr) return nullptr;
  Instruction *const x = FirstElement(c, r), *const y = FirstElement(d, r);
  const auto value =
      hlo::EvaluateInstruction(*Make(r, x, i->opcode(), x, y), {&x->literal(), &y->literal()});
  if (!value.ok()) return nullptr;
  Instruction* both = r.AddConstant(*value);
  if (i->shape().rank() > 0) both = r.Broadcast(both, i->shape(), {});
  return Make(r, i, i->opcode(), inner->operand(0), both);
}

Instruction* DivideOne(Instruction* i, Rewriter&) {
  Instruction* x;
  return Match(i, m::Divide(m::Op(&x), m::Scalar(1))) ? x : nullptr;
}

// Both round x * 2^-k once. The reciprocal must be a normal number, or flushing subnormals would
// change it.
Instruction* DividePowerOfTwo(Instruction* i, Rewriter& r) {
  Instruction* x;
  const Instruction* c;
  if (!IsIeee(i) || !Match(i, m::Divide(m::Op(&x), m::Splat(&c)))) return nullptr;
  const double value = c->literal().AsDouble(0);
  int exponent;
  if (!std::isfinite(value) || std::abs(std::frexp(value, &exponent)) != 0.5) return nullptr;
  const int limit = i->shape().dtype() == DType::kF64   ? 1022
                    : i->shape().dtype() == DType::kF16 ? 14
                                                        : 126;
  if (std::abs(exponent - 1) > limit) return nullptr;
  return Make(r, i, Opcode::kMultiply, x, r.Full(i->shape(), 1 / value));
}

Instruction* RemainderOneInt(Instruction* i, Rewriter& r) {
  if (!IsInteger(i) || !IsSplatOf(i->operand(1), 1)) return nullptr;
  return r.Full(i->shape(), 0);
}

Instruction* NegateNegate(Instruction* i, Rewriter&) {
  Instruction* x;
  return Match(i, m::Negate(m::Negate(m::Op(&x)))) ? x : nullptr;
}

Instruction* NegateSubtractInt(Instruction* i, Rewriter& r) {
  Instruction *x, *y;
  if (!IsInteger(i) || !Match(i, m::Negate(m::Subtract(m::Op(&x), m::Op(&y))))) return nullptr;
  return Make(r, i, Opcode::kSubtract, y, x);
}

Instruction* AbsNegate(Instruction* i, Rewriter& r) {
  Instruction* x;
  if (!IsIeee(i) && !IsInteger(i)) return nullptr;
  return Match(i, m::Abs(m::Negate(m::Op(&x)))) ? Make(r, i, Opcode::kAbs, x) : nullptr;
}

// What rounds or is positive already stays as it is.
Instruction* Idempotent(Instruction* i, Rewriter&) {
  Instruction* const x = i->operand(0);
  if (i->opcode() == Opcode::kAbs) return x->opcode() == Opcode::kAbs ? x : nullptr;
  constexpr OpcodeSet kRound = {Opcode::kCeil, Opcode::kFloor, Opcode::kRoundNearestAfz,
                                Opcode::kRoundNearestEven};
  return kRound.contains(x->opcode()) ? x : nullptr;
}

Instruction* ExtremumSelf(Instruction* i, Rewriter&) {
  return i->operand(0) == i->operand(1) ? i->operand(0) : nullptr;
}

double Infinity(const Instruction* i) {
  return i->opcode() == Opcode::kMaximum ? -std::numeric_limits<double>::infinity()
                                         : std::numeric_limits<double>::infinity();
}

Instruction* ExtremumInfinity(Instruction* i, Rewriter&) {
  if (!IsIeee(i)) return nullptr;
  if (IsSplatOf(i->operand(1), Infinity(i))) return i->operand(0);
  return IsSplatOf(i->operand(0), Infinity(i)) ? i->operand(1) : nullptr;
}

Instruction* ClampUnbounded(Instruction* i, Rewriter&) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const bool unbounded =
      IsIeee(i) && IsSplatOf(i->operand(0), -kInf) && IsSplatOf(i->operand(2), kInf);
  return unbounded ? i->operand(1) : nullptr;
}

Instruction* ShiftZero(Instruction* i, Rewriter&) {
  return IsSplatOf(i->operand(1), 0) ? i->operand(0) : nullptr;
}

// The part of an operand of an elementwise instruction from which the rest is repeated; null if it
// is not `dims` of one.
Instruction* BroadcastSource(Instruction* operand, const Instruction* first) {
  if (operand->opcode() != Opcode::kBroadcast) return nullptr;
  const bool alike = operand->attrs() == first->attrs() &&
                     SameDims(operand->operand(0)->shape(), first->operand(0)->shape());
  return alike ? operand->operand(0) : nullptr;
}

// Work on few elements and repeat the result, instead of repeating the operands.
Instruction* ElementwiseOfBroadcasts(Instruction* i, Rewriter& r) {
  if (i->operand_count() == 0 || i->opcode() == Opcode::kCopy) return nullptr;
  Instruction* const first = i->operand(i->operand_count() == 3 ? 1 : 0);
  if (first->opcode() != Opcode::kBroadcast || first->operand(0)->shape().num_elements() == 0)
    return nullptr;
  std::array<Instruction*, 3> sources;  // no elementwise opcode has more operands
  std::size_t count = 0;
  for (Instruction* operand : i->operands()) {
    // select's predicate and clamp's bounds may be scalars.
    const bool scalar = operand->shape().IsScalar() && first->operand(0)->shape().IsScalar();
    Instruction* source = BroadcastSource(operand, first);
    if (source == nullptr && scalar) source = operand;
    if (source == nullptr) return nullptr;
    sources[count++] = source;
  }
  const Shape shape(i->shape().dtype(), first->operand(0)->shape().dims());
  Instruction* const small = r.Add(i->opcode(), shape, {sources.data(), count}, i->attrs());
  return r.Broadcast(small, i->shape(), first->attrs_as<hlo::DimensionsAttrs>().dimensions);
}

constexpr Rule kArithmeticRules[] = {
    {"elementwise-of-broadcasts", OpcodeSet::Elementwise(), ElementwiseOfBroadcasts,
     "f(broadcast(x), broadcast(y)) => broadcast(f(x, y))"},
    {"constant-right", OpcodeSet::Commutative(), ConstantRight, "c + x => x + c"},
    {"add-zero", Opcode::kAdd, AddZero, "x + 0 => x (floats: -0.0)"},
    {"add-negate", Opcode::kAdd, AddNegate, "x + -y => x - y"},
    {"subtract-zero", Opcode::kSubtract, SubtractZero, "x - 0 => x (floats: +0.0)"},
    {"subtract-negate", Opcode::kSubtract, SubtractNegate, "x - -y => x + y"},
    {"subtract-self-int", Opcode::kSubtract, SubtractSelfInt, "x - x => 0 (integers)"},
    {"multiply-one", Opcode::kMultiply, MultiplyOne, "x * 1 => x"},
    {"multiply-minus-one", Opcode::kMultiply, MultiplyMinusOne, "x * -1 => -x"},
    {"multiply-zero-int", Opcode::kMultiply, MultiplyZeroInt, "x * 0 => 0 (integers)"},
    {"multiply-negates", Opcode::kMultiply, MultiplyNegates, "-x * -y => x * y"},
    {"associate-constants-int",
     {Opcode::kAdd, Opcode::kMultiply},
     AssociateConstantsInt,
     "(x + c) + d => x + (c + d) (integers)"},
    {"divide-one", Opcode::kDivide, DivideOne, "x / 1 => x"},
    {"divide-power-of-two", Opcode::kDivide, DividePowerOfTwo, "x / 2^k => x * 2^-k (floats)"},
    {"remainder-one-int", Opcode::kRemainder, RemainderOneInt, "x % 1 => 0 (integers)"},
    {"negate-negate", Opcode::kNegate, NegateNegate, "-(-x) => x"},
    {"negate-subtract-int", Opcode::kNegate, NegateSubtractInt, "-(x - y) => y - x (integers)"},
    {"abs-negate", Opcode::kAbs, AbsNegate, "|-x| => |x|"},
    {"idempotent",
     {Opcode::kAbs, Opcode::kCeil, Opcode::kFloor, Opcode::kRoundNearestAfz,
      Opcode::kRoundNearestEven},
     Idempotent,
     "floor(ceil(x)) => ceil(x)"},
    {"extremum-self", {Opcode::kMaximum, Opcode::kMinimum}, ExtremumSelf, "max(x, x) => x"},
    {"extremum-infinity",
     {Opcode::kMaximum, Opcode::kMinimum},
     ExtremumInfinity,
     "max(x, -inf) => x"},
    {"clamp-unbounded", Opcode::kClamp, ClampUnbounded, "clamp(-inf, x, inf) => x"},
    {"shift-zero",
     {Opcode::kShiftLeft, Opcode::kShiftRightArithmetic, Opcode::kShiftRightLogical},
     ShiftZero,
     "x << 0 => x"},
};

}  // namespace

absl::Span<const Rule> ArithmeticRules() { return kArithmeticRules; }

}  // namespace lazuli::lowering
