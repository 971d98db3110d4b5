// Integers of 64 bits as two words: labels, indices and counters are s64 in most programs. What is
// rare (division) is left to the host.

#include "backend/npu/compiler/expression.h"
#include "backend/npu/compiler/index_form.h"

namespace lazuli::npu {
namespace {

using hlo::Opcode;

class WideMaker {
 public:
  WideMaker(Expression& e, DType dtype) : e_(e), signed_(dtype != DType::kU64) {}

  int Word(Micro op, int a, int b = -1, int c = -1) { return e_.Op(op, kUnsigned, a, b, c); }
  int Number(uint32_t value) { return e_.Literal(value, kUnsigned); }

  ValueNodes Add(ValueNodes a, ValueNodes b) {
    const int low = Word(Micro::kAdd, a.low, b.low), carry = Word(Micro::kCmpLt, low, a.low);
    return {low, Word(Micro::kAdd, Word(Micro::kAdd, a.high, b.high), carry)};
  }
  ValueNodes Subtract(ValueNodes a, ValueNodes b) {
    const int borrow = Word(Micro::kCmpLt, a.low, b.low);
    return {Word(Micro::kSub, a.low, b.low),
            Word(Micro::kSub, Word(Micro::kSub, a.high, b.high), borrow)};
  }
  ValueNodes Negate(ValueNodes a) { return Subtract({Number(0), Number(0)}, a); }
  ValueNodes Multiply(ValueNodes a, ValueNodes b) {
    const int cross =
        Word(Micro::kAdd, Word(Micro::kMul, a.low, b.high), Word(Micro::kMul, a.high, b.low));
    return {Word(Micro::kMul, a.low, b.low), Word(Micro::kAdd, UpperProduct(a.low, b.low), cross)};
  }
  ValueNodes Bits(Micro op, ValueNodes a, ValueNodes b) {
    return {Word(op, a.low, b.low), Word(op, a.high, b.high)};
  }
  ValueNodes Select(int mask, ValueNodes a, ValueNodes b) {
    return {Word(Micro::kSel, mask, a.low, b.low), Word(Micro::kSel, mask, a.high, b.high)};
  }
  int Equal(ValueNodes a, ValueNodes b) {
    return Word(Micro::kAnd, Word(Micro::kCmpEq, a.low, b.low),
                Word(Micro::kCmpEq, a.high, b.high));
  }
  int Less(ValueNodes a, ValueNodes b) {
    const int high = e_.Op(Micro::kCmpLt, signed_ ? kSigned : kUnsigned, a.high, b.high);
    const int low =
        Word(Micro::kAnd, Word(Micro::kCmpEq, a.high, b.high), Word(Micro::kCmpLt, a.low, b.low));
    return Word(Micro::kOr, high, low);
  }
  int Not(int mask) { return Word(Micro::kXor, mask, Number(1)); }
  int Compare(hlo::ComparisonDirection direction, ValueNodes a, ValueNodes b) {
    switch (direction) {
      case hlo::ComparisonDirection::kEq:
        return Equal(a, b);
      case hlo::ComparisonDirection::kNe:
        return Not(Equal(a, b));
      case hlo::ComparisonDirection::kLt:
        return Less(a, b);
      case hlo::ComparisonDirection::kLe:
        return Not(Less(b, a));
      case hlo::ComparisonDirection::kGt:
        return Less(b, a);
      case hlo::ComparisonDirection::kGe:
        return Not(Less(a, b));
    }
    return -1;
  }
  ValueNodes Maximum(ValueNodes a, ValueNodes b) { return Select(Less(b, a), a, b); }
  ValueNodes Minimum(ValueNodes a, ValueNodes b) { return Select(Less(a, b), a, b); }
  // Words are shifted to nothing, or to their sign, by 32 and more; so everything is by 64 and more,
  // as the numbers that are shifted by are unsigned.
  ValueNodes ShiftLeft(ValueNodes a, ValueNodes by) {
    const int n = Amount(by);
    const int high = Word(Micro::kOr, Word(Micro::kShr, a.low, Word(Micro::kSub, Number(32), n)),
                          Word(Micro::kShl, a.low, Word(Micro::kSub, n, Number(32))));
    return {Word(Micro::kShl, a.low, n), Word(Micro::kOr, Word(Micro::kShl, a.high, n), high)};
  }
  ValueNodes ShiftRight(ValueNodes a, ValueNodes by, bool arithmetic) {
    const int n = Amount(by), type = arithmetic ? kSigned : kUnsigned;
    const int below = Word(Micro::kOr, Word(Micro::kShr, a.low, n),
                           Word(Micro::kShl, a.high, Word(Micro::kSub, Number(32), n)));
    const int above = e_.Op(Micro::kShr, type, a.high, Word(Micro::kSub, n, Number(32)));
    return {Word(Micro::kSel, Word(Micro::kCmpGe, n, Number(32)), above, below),
            e_.Op(Micro::kShr, type, a.high, n)};
  }
  int Negative(ValueNodes a) { return Word(Micro::kShr, a.high, Number(31)); }

  // A value of a narrower type, extended.
  ValueNodes Extended(DType from, int x) {
    const bool sign = IsSigned(from);
    return {x, sign ? e_.Op(Micro::kShr, kSigned, x, e_.Literal(31, kSigned)) : Number(0)};
  }

  // The upper words' bits that count, and in the last one whether there were others: rounding that
  // to a float rounds once.
  int ToFloat(ValueNodes a, bool bf16) {
    const int negative = signed_ ? Negative(a) : Number(0);
    const ValueNodes x = signed_ ? Select(negative, Negate(a), a) : a;
    const int zeros = LeadingZeros(x.high);
    const int rest = Word(Micro::kSub, Number(32), zeros);
    const int top =
        Word(Micro::kOr, Word(Micro::kShl, x.high, zeros), Word(Micro::kShr, x.low, rest));
    const int lost = Word(Micro::kCmpNe, Word(Micro::kShl, x.low, zeros), Number(0));
    const int mantissa = Word(Micro::kSel, x.high, Word(Micro::kOr, top, lost), x.low);
    const int rounded =
        bf16 ? IntegerToBf16(kUnsigned, mantissa, e_) : e_.Op(Micro::kToF, kUnsigned, mantissa);
    const int power = Word(Micro::kShl, Word(Micro::kAdd, rest, Number(127)), Number(23));
    const int scale = Word(Micro::kSel, x.high, power, e_.Float(1));
    const int magnitude = e_.Op(Micro::kMul, kFloats, rounded, scale);
    return Word(Micro::kOr, magnitude, Word(Micro::kShl, negative, Number(31)));
  }

  // Truncated; out of range to the nearest bound, NaN to 0.
  ValueNodes FromFloat(int x) {
    const int bits = Word(Micro::kAnd, x, Number(0x7fffffff));
    const int exponent = Word(Micro::kShr, bits, Number(23));
    const int mantissa =
        Word(Micro::kOr, Word(Micro::kAnd, bits, Number(0x7fffff)), Number(0x800000));
    const int shift = Word(Micro::kSub, exponent, Number(150));  // to the left, if at least 2^24
    const int over = Word(Micro::kSub, shift, Number(32));
    const ValueNodes large{
        Word(Micro::kShl, mantissa, shift),
        Word(Micro::kOr, Word(Micro::kShr, mantissa, Word(Micro::kSub, Number(32), shift)),
             Word(Micro::kShl, mantissa, over))};
    const ValueNodes small{e_.Op(Micro::kToI, kUnsigned, e_.Op(Micro::kAbs, kFloats, x)),
                           Number(0)};
    ValueNodes result = Select(Word(Micro::kCmpGe, exponent, Number(151)), large, small);
    const int negative = Word(Micro::kShr, x, Number(31));
    const int infinite = Word(Micro::kCmpGe, exponent, Number(signed_ ? 190u : 191u));
    const ValueNodes most{Number(~0u), Number(signed_ ? 0x7fffffffu : ~0u)};
    if (signed_) {
      result = Select(infinite, most, result);
      result = Select(negative, Select(infinite, {Number(0), Number(0x80000000)}, Negate(result)),
                      result);
    } else {
      result = Select(negative, {Number(0), Number(0)}, Select(infinite, most, result));
    }
    return Select(e_.Op(Micro::kCmpEq, kFloats, x, x), result, {Number(0), Number(0)});
  }

 private:
  int Amount(ValueNodes by) { return Word(Micro::kSel, by.high, Number(~0u), by.low); }
  int UpperProduct(int a, int b) {
    const int mask = Number(0xffff), half = Number(16);
    const int a0 = Word(Micro::kAnd, a, mask), a1 = Word(Micro::kShr, a, half);
    const int b0 = Word(Micro::kAnd, b, mask), b1 = Word(Micro::kShr, b, half);
    const int low = Word(Micro::kMul, a0, b0), x = Word(Micro::kMul, a0, b1),
              y = Word(Micro::kMul, a1, b0);
    int middle = Word(Micro::kShr, low, half);
    middle = Word(Micro::kAdd, middle, Word(Micro::kAnd, x, mask));
    middle = Word(Micro::kAdd, middle, Word(Micro::kAnd, y, mask));
    int sum = Word(Micro::kAdd, Word(Micro::kMul, a1, b1), Word(Micro::kShr, middle, half));
    sum = Word(Micro::kAdd, sum, Word(Micro::kShr, x, half));
    return Word(Micro::kAdd, sum, Word(Micro::kShr, y, half));
  }
  // By halves: 16, 8, ... zeros in front are shifted out and counted. Of 0: 31.
  int LeadingZeros(int x) {
    int count = Number(0);
    for (uint32_t step = 16; step >= 1; step /= 2) {
      const int empty = Word(Micro::kCmpLt, x, Number(1u << (32 - step)));
      const int by = Word(Micro::kMul, empty, Number(step));
      x = Word(Micro::kShl, x, by);
      count = Word(Micro::kAdd, count, by);
    }
    return count;
  }

  Expression& e_;
  bool signed_;
};

}  // namespace

bool HasWideNodes(const hlo::Instruction& i) {
  Expression scratch;
  std::vector<ValueNodes> operands;
  for (const hlo::Instruction* operand : i.operands()) {
    const ValueNodes word{scratch.Load(0, Type::kU32)};
    operands.push_back(IsWide(operand->shape().dtype()) ? ValueNodes{word.low, word.low} : word);
  }
  return AddWide(i, operands, scratch).has_value();
}

ValueNodes AddWideConvert(DType from, DType to, ValueNodes x, Expression& e) {
  WideMaker m(e, IsWide(from) ? from : to);
  if (IsWide(from) && IsWide(to)) return x;
  if (IsWide(to)) return IsFloat(from) ? m.FromFloat(x.low) : m.Extended(from, x.low);
  if (IsFloat(to)) return {m.ToFloat(x, to == DType::kBF16)};
  if (to == DType::kPred)
    return {m.Word(Micro::kCmpNe, m.Word(Micro::kOr, x.low, x.high), m.Number(0))};
  // The lower bits.
  return AddConvert(DType::kU32, to, {x.low}, e);
}

std::optional<ValueNodes> AddWide(const hlo::Instruction& i, absl::Span<const ValueNodes> operands,
                                  Expression& e) {
  const DType dtype = i.operand(i.opcode() == Opcode::kSelect ? 1 : 0)->shape().dtype();
  WideMaker m(e, dtype);
  const ValueNodes x = operands[0], y = operands.size() > 1 ? operands[1] : ValueNodes{};
  const ValueNodes zero{m.Number(0), m.Number(0)}, ones{m.Number(~0u), m.Number(~0u)};
  switch (i.opcode()) {
    case Opcode::kAdd:
      return m.Add(x, y);
    case Opcode::kSubtract:
      return m.Subtract(x, y);
    case Opcode::kMultiply:
      return m.Multiply(x, y);
    case Opcode::kMaximum:
      return m.Maximum(x, y);
    case Opcode::kMinimum:
      return m.Minimum(x, y);
    case Opcode::kAnd:
      return m.Bits(Micro::kAnd, x, y);
    case Opcode::kOr:
      return m.Bits(Micro::kOr, x, y);
    case Opcode::kXor:
      return m.Bits(Micro::kXor, x, y);
    case Opcode::kNot:
      return m.Bits(Micro::kXor, x, ones);
    case Opcode::kShiftLeft:
      return m.ShiftLeft(x, y);
    case Opcode::kShiftRightLogical:
      return m.ShiftRight(x, y, false);
    case Opcode::kShiftRightArithmetic:
      return m.ShiftRight(x, y, true);
    case Opcode::kNegate:
      return m.Negate(x);
    case Opcode::kAbs:
      return m.Select(m.Negative(x), m.Negate(x), x);
    case Opcode::kSign: {
      const ValueNodes one{m.Not(m.Equal(x, zero)), m.Number(0)};
      return dtype == DType::kU64 ? one : m.Select(m.Negative(x), ones, one);
    }
    case Opcode::kCompare:
      return ValueNodes{m.Compare(i.attrs_as<hlo::CompareAttrs>().direction, x, y)};
    case Opcode::kSelect:
      return m.Select(x.low, y, operands[2]);
    case Opcode::kClamp:
      return m.Minimum(m.Maximum(y, x), operands[2]);
    case Opcode::kConvert:
      return AddWideConvert(dtype, i.shape().dtype(), x, e);
    case Opcode::kCopy:
      return x;
    default:
      return std::nullopt;
  }
}

ValueNodes ClampIndex(DType dtype, ValueNodes index, int64_t last, Expression& e) {
  const auto most = static_cast<uint32_t>(last);
  if (IsWide(dtype)) {
    WideMaker m(e, dtype);
    return m.Minimum(m.Maximum(index, {m.Number(0), m.Number(0)}), {m.Number(most), m.Number(0)});
  }
  const int type = ArithmeticOf(dtype);
  const int least = e.Op(Micro::kMax, type, index.low, e.Literal(0, type));
  return {e.Op(Micro::kMin, type, least, e.Literal(most, type))};
}

int EqualIndex(DType dtype, ValueNodes a, ValueNodes b, Expression& e) {
  if (IsWide(dtype)) return WideMaker(e, dtype).Equal(a, b);
  return e.Op(Micro::kCmpEq, kSigned, a.low, b.low);
}

}  // namespace lazuli::npu
