// Elementwise HLO as micro-operations, bit for bit what the evaluator computes.

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "backend/npu/compiler/expression.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

using hlo::Opcode;

// Builds the nodes of one instruction.
class Maker {
 public:
  Maker(Expression& e, DType dtype) : e_(e), dtype_(dtype), type_(ArithmeticOf(dtype)) {}

  int Op(Micro op, int a, int b = -1, int c = -1) { return e_.Op(op, type_, a, b, c); }
  int Bits(Micro op, int a, int b) { return e_.Op(op, kUnsigned, a, b); }
  int Number(uint32_t value) { return e_.Literal(value, type_ == kFloats ? kSigned : type_); }

  // A result in 32 bits as a value of the type.
  int Fit(int x) {
    switch (dtype_) {
      case DType::kBF16:
        return Op(Micro::kBf, x);
      case DType::kU8:
        return Bits(Micro::kAnd, x, Number(0xff));
      case DType::kS8:
      case DType::kS16: {
        const int shift = Number(dtype_ == DType::kS8 ? 24 : 16);
        return e_.Op(Micro::kShr, kSigned, e_.Op(Micro::kShl, kSigned, x, shift), shift);
      }
      default:
        return x;
    }
  }
  int width() const { return ByteWidth(dtype_) * 8; }
  // The value's own bits, zeros above them.
  int ZeroExtended(int x) {
    return width() == 32 ? x : Bits(Micro::kAnd, x, Number((1u << width()) - 1));
  }
  int IsZero(int x) { return e_.Op(Micro::kCmpEq, kSigned, x, Number(0)); }

  int Popcount(int x) {
    auto masked_sum = [&](int v, uint32_t mask, uint32_t shift) {
      const int m = Number(mask);
      return Bits(Micro::kAdd, Bits(Micro::kAnd, v, m),
                  Bits(Micro::kAnd, e_.Op(Micro::kShr, kUnsigned, v, Number(shift)), m));
    };
    x = masked_sum(x, 0x55555555, 1);
    x = masked_sum(x, 0x33333333, 2);
    x = masked_sum(x, 0x0f0f0f0f, 4);
    return e_.Op(Micro::kShr, kUnsigned, Bits(Micro::kMul, x, Number(0x01010101)), Number(24));
  }
  int LeadingZeros(int x) {
    for (uint32_t shift = 1; shift < 32; shift *= 2)
      x = Bits(Micro::kOr, x, e_.Op(Micro::kShr, kUnsigned, x, Number(shift)));
    return Bits(Micro::kSub, Number(static_cast<uint32_t>(width())), Popcount(x));
  }
  // Rounds half away from zero.
  int RoundAway(int x) {
    const int sum = Op(Micro::kAdd, Op(Micro::kAbs, x), e_.Float(0x1.fffffep-2f));
    const int sign = Bits(Micro::kAnd, x, Number(0x80000000));
    return Bits(Micro::kOr, Op(Micro::kFlr, sum), sign);
  }

  Expression& e_;
  DType dtype_;
  int type_;
};

// Micro-operations that are the opcode's meaning for every type, but for the fit; {0}: none.
Micro Direct(Opcode opcode) {
  switch (opcode) {
#define LAZULI_DIRECT(hlo, micro) \
  case Opcode::hlo:               \
    return Micro::micro;
    LAZULI_DIRECT(kAdd, kAdd)
    LAZULI_DIRECT(kSubtract, kSub)
    LAZULI_DIRECT(kMultiply, kMul)
    LAZULI_DIRECT(kDivide, kDiv)
    LAZULI_DIRECT(kRemainder, kRem)
    LAZULI_DIRECT(kMaximum, kMax)
    LAZULI_DIRECT(kMinimum, kMin)
    LAZULI_DIRECT(kAnd, kAnd)
    LAZULI_DIRECT(kOr, kOr)
    LAZULI_DIRECT(kXor, kXor)
    LAZULI_DIRECT(kShiftLeft, kShl)
    LAZULI_DIRECT(kAbs, kAbs)
    LAZULI_DIRECT(kNegate, kNeg)
    LAZULI_DIRECT(kSign, kSgn)
    LAZULI_DIRECT(kFloor, kFlr)
    LAZULI_DIRECT(kRoundNearestEven, kRnd)
    LAZULI_DIRECT(kSqrt, kSqrt)
    LAZULI_DIRECT(kRsqrt, kRsqrt)
    LAZULI_DIRECT(kCbrt, kCbrt)
    LAZULI_DIRECT(kExponential, kExp)
    LAZULI_DIRECT(kExponentialMinusOne, kExpm1)
    LAZULI_DIRECT(kLog, kLog)
    LAZULI_DIRECT(kLogPlusOne, kLog1p)
    LAZULI_DIRECT(kLogistic, kLogistic)
    LAZULI_DIRECT(kTanh, kTanh)
    LAZULI_DIRECT(kSine, kSin)
    LAZULI_DIRECT(kCosine, kCos)
    LAZULI_DIRECT(kTan, kTan)
    LAZULI_DIRECT(kErf, kErf)
    LAZULI_DIRECT(kPower, kPow)
    LAZULI_DIRECT(kAtan2, kAtan2)
    LAZULI_DIRECT(kSelect, kSel)
    LAZULI_DIRECT(kReal, kMov)
    LAZULI_DIRECT(kCopy, kMov)
#undef LAZULI_DIRECT
    default:
      return Micro{};
  }
}

// Pred is one bit: its sum is or, its product and.
int Logical(Opcode opcode, Maker& m, int x, int y) {
  auto negated = [&](int v) { return m.Bits(Micro::kXor, v, m.Number(1)); };
  switch (opcode) {
    case Opcode::kAdd:
    case Opcode::kMaximum:
    case Opcode::kOr:
      return m.Bits(Micro::kOr, x, y);
    case Opcode::kMultiply:
    case Opcode::kMinimum:
    case Opcode::kAnd:
      return m.Bits(Micro::kAnd, x, y);
    case Opcode::kSubtract:
    case Opcode::kXor:
      return m.Bits(Micro::kXor, x, y);
    case Opcode::kDivide:
    case Opcode::kPower:
      return m.Bits(Micro::kOr, x, negated(y));
    case Opcode::kNot:
      return negated(x);
    case Opcode::kNegate:
      return x;
    default:
      return -1;
  }
}

Micro ComparisonOf(hlo::ComparisonDirection direction) {
  constexpr Micro kMicros[] = {Micro::kCmpEq, Micro::kCmpNe, Micro::kCmpLt,
                               Micro::kCmpLe, Micro::kCmpGt, Micro::kCmpGe};
  return kMicros[static_cast<std::size_t>(direction)];
}

int Compare(const hlo::Instruction& instruction, Maker& m, int x, int y) {
  const auto& attrs = instruction.attrs_as<hlo::CompareAttrs>();
  int type = m.type_;
  if (type == kFloats && attrs.type == hlo::ComparisonType::kTotalOrder) {
    // As integers: those of negative floats go the other way.
    auto key = [&](int v) {
      const int sign = m.e_.Op(Micro::kShr, kSigned, v, m.Number(31));
      return m.Bits(Micro::kXor, v, m.Bits(Micro::kAnd, sign, m.Number(0x7fffffff)));
    };
    x = key(x);
    y = key(y);
    type = kSigned;
  }
  return m.e_.Op(ComparisonOf(attrs.direction), type, x, y);
}

int ShiftRight(Opcode opcode, Maker& m, int x, int y) {
  if (opcode == Opcode::kShiftRightLogical)
    return m.Fit(m.e_.Op(Micro::kShr, kUnsigned, m.ZeroExtended(x), y));
  if (m.dtype_ == DType::kU8) {  // its sign bit is bit 7
    const int shift = m.Number(24);
    x = m.e_.Op(Micro::kShr, kSigned, m.e_.Op(Micro::kShl, kSigned, x, shift), shift);
  }
  return m.Fit(m.e_.Op(Micro::kShr, kSigned, x, y));
}

bool SameWidth(const hlo::Instruction& instruction) {
  const DType from = instruction.operand(0)->shape().dtype(), to = instruction.shape().dtype();
  return ByteWidth(from) == 4 && ByteWidth(to) == 4;
}

bool ReducesToBf16(const hlo::Instruction& instruction) {
  const auto& attrs = instruction.attrs_as<hlo::ReducePrecisionAttrs>();
  return attrs.exponent_bits == 8 && (attrs.mantissa_bits == 7 || attrs.mantissa_bits >= 23);
}

}  // namespace

// Integers beyond f32's 24 bits keep what they lose in their last bit, so that rounding to bf16
// behind it rounds once.
int IntegerToBf16(int type, int x, Expression& e) {
  auto number = [&](uint32_t v) { return e.Literal(v, type); };
  const int lost =
      e.Op(Micro::kCmpNe, kSigned, e.Op(Micro::kAnd, kUnsigned, x, number(0xff)), number(0));
  const int odd = e.Op(Micro::kOr, kUnsigned, e.Op(Micro::kAnd, kUnsigned, x, number(~0xffu)),
                       e.Op(Micro::kShl, kUnsigned, lost, number(8)));
  const int magnitude = type == kSigned ? e.Op(Micro::kAbs, kSigned, x) : x;
  const int large = e.Op(Micro::kCmpGe, type, magnitude, number(1u << 24));
  return e.Op(Micro::kBf, kFloats,
              e.Op(Micro::kToF, type, e.Op(Micro::kSel, kSigned, large, odd, x)));
}

static int ConvertNarrow(DType from, DType to, int x, Expression& e) {
  Maker m(e, to);
  const bool floats = IsFloat(from);
  if (to == DType::kPred) {
    const int zero = floats ? e.Float(0) : e.Literal(0, kSigned);
    return e.Op(Micro::kCmpNe, floats ? kFloats : kSigned, x, zero);
  }
  if (to == DType::kF32) return floats ? x : e.Op(Micro::kToF, ArithmeticOf(from), x);
  if (to == DType::kBF16) {
    if (floats) return from == to ? x : e.Op(Micro::kBf, kFloats, x);
    if (ByteWidth(from) == 4) return IntegerToBf16(ArithmeticOf(from), x, e);
    return e.Op(Micro::kBf, kFloats, e.Op(Micro::kToF, kSigned, x));
  }
  if (!floats) return ByteWidth(from) > ByteWidth(to) || from != to ? m.Fit(x) : x;
  const int whole = e.Op(Micro::kToI, ArithmeticOf(to), x);
  if (ByteWidth(to) == 4) return whole;
  const int bits = ByteWidth(to) * 8;
  const int32_t low = to == DType::kU8 ? 0 : -(1 << (bits - 1)),
                high = to == DType::kU8 ? 255 : (1 << (bits - 1)) - 1;
  const int limited =
      e.Op(Micro::kMax, kSigned, whole, e.Literal(static_cast<uint32_t>(low), kSigned));
  return e.Op(Micro::kMin, kSigned, limited, e.Literal(static_cast<uint32_t>(high), kSigned));
}

ValueNodes AddConvert(DType from, DType to, ValueNodes x, Expression& e) {
  if (IsWide(from) || IsWide(to)) return AddWideConvert(from, to, x, e);
  return {ConvertNarrow(from, to, x.low, e)};
}

std::optional<std::string> WhyNoNodes(const hlo::Instruction& instruction) {
  const DType dtype =
      instruction.operand_count() > 0 ? instruction.operand(0)->shape().dtype() : DType::kF32;
  bool wide = IsWide(instruction.shape().dtype());
  for (const hlo::Instruction* operand : instruction.operands())
    wide = wide || IsWide(operand->shape().dtype());
  if (wide && !HasWideNodes(instruction))
    return Str("the vector unit has no ", OpcodeText(instruction.opcode()), " of 64 bits");
  switch (instruction.opcode()) {
    case Opcode::kNot:
    case Opcode::kIsFinite:
    case Opcode::kPopcnt:
    case Opcode::kCountLeadingZeros:
    case Opcode::kCeil:
    case Opcode::kRoundNearestAfz:
    case Opcode::kShiftRightArithmetic:
    case Opcode::kShiftRightLogical:
    case Opcode::kCompare:
    case Opcode::kClamp:
    case Opcode::kConvert:
    case Opcode::kImag:
      return std::nullopt;
    case Opcode::kBitcastConvert:
      if (SameWidth(instruction)) return std::nullopt;
      return "a bitcast-convert of other than 32 bits";
    case Opcode::kReducePrecision:
      if (ReducesToBf16(instruction)) return std::nullopt;
      return "a reduce-precision to another format than bf16";
    case Opcode::kPower:
      if (!IsFloat(dtype) && dtype != DType::kPred) return "a power of integers";
      return std::nullopt;
    case Opcode::kRemainder:
    case Opcode::kAtan2:
      if (dtype == DType::kPred) return Str(OpcodeText(instruction.opcode()), " of pred");
      return std::nullopt;
    default:
      if (Direct(instruction.opcode()) != Micro{}) return std::nullopt;
      return Str("the vector unit has no ", OpcodeText(instruction.opcode()));
  }
}

static int AddNarrow(const hlo::Instruction& instruction, absl::Span<const int> operands,
                     Expression& e) {
  const Opcode opcode = instruction.opcode();
  const DType operand = instruction.operand(opcode == Opcode::kSelect ? 1 : 0)->shape().dtype();
  Maker m(e, operand);
  const int x = operands[0], y = operands.size() > 1 ? operands[1] : -1;
  switch (opcode) {
    case Opcode::kSelect:
      return e.Op(Micro::kSel, m.type_, x, y, operands[2]);
    case Opcode::kCopy:
    case Opcode::kReal:
    case Opcode::kBitcastConvert:
      return x;
    case Opcode::kCompare:
      return Compare(instruction, m, x, y);
    case Opcode::kConvert:
      return ConvertNarrow(operand, instruction.shape().dtype(), x, e);
    case Opcode::kClamp:
      return m.Op(Micro::kMin, m.Op(Micro::kMax, y, x), operands[2]);
    case Opcode::kReducePrecision:
      return instruction.attrs_as<hlo::ReducePrecisionAttrs>().mantissa_bits == 7
                 ? m.Op(Micro::kBf, x)
                 : x;
    case Opcode::kIsFinite:
      return m.Op(Micro::kCmpLt, m.Op(Micro::kAbs, x),
                  e.Float(std::numeric_limits<float>::infinity()));
    case Opcode::kImag:
      return e.Float(0);
    default:
      break;
  }
  if (operand == DType::kPred) return Logical(opcode, m, x, y);
  switch (opcode) {
    case Opcode::kNot:
      return m.Fit(m.Bits(Micro::kXor, x, m.Number(~0u)));
    case Opcode::kPopcnt:
      return m.Popcount(m.ZeroExtended(x));
    case Opcode::kCountLeadingZeros:
      return m.LeadingZeros(m.ZeroExtended(x));
    case Opcode::kCeil:
      return m.Op(Micro::kNeg, m.Op(Micro::kFlr, m.Op(Micro::kNeg, x)));
    case Opcode::kRoundNearestAfz:
      return m.RoundAway(x);
    case Opcode::kShiftRightArithmetic:
    case Opcode::kShiftRightLogical:
      return ShiftRight(opcode, m, x, y);
    default:
      return m.Fit(m.Op(Direct(opcode), x, y));
  }
}

ValueNodes AddElementwise(const hlo::Instruction& instruction,
                          absl::Span<const ValueNodes> operands, Expression& e) {
  if (IsWide(instruction.shape().dtype()) ||
      std::any_of(operands.begin(), operands.end(), [](const ValueNodes& v) { return v.wide(); }))
    return *AddWide(instruction, operands, e);
  std::vector<int> nodes;
  for (const ValueNodes& operand : operands) nodes.push_back(operand.low);
  return {AddNarrow(instruction, nodes, e)};
}

}  // namespace lazuli::npu
