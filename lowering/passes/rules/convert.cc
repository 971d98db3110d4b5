// Conversions between element types, and complex numbers.
#include "lowering/passes/match.h"
#include "lowering/passes/rules/rules.h"

namespace lazuli::lowering {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Bits of the significand of a float type, the implicit one included; 0 for types whose arithmetic
// we do not rely on.
int SignificandBits(DType t) {
  switch (t) {
    case DType::kF16:
      return 11;
    case DType::kBF16:
      return 8;
    case DType::kF32:
      return 24;
    case DType::kF64:
      return 53;
    default:
      return 0;
  }
}

// Whether every value of `from` is a value of `to`.
bool IsExact(DType from, DType to) {
  if (from == to || from == DType::kPred) return true;
  const int from_bits = Row(from).bits, to_bits = Row(to).bits;
  if (IsIntegral(from)) {
    if (IsFloat(to))
      return from_bits - (IsSigned(from) ? 1 : 0) <= SignificandBits(to) && to != DType::kF16;
    if (!IsIntegral(to)) return false;
    return IsSigned(from) ? IsSigned(to) && to_bits >= from_bits
                          : to_bits > from_bits || (IsUnsigned(to) && to_bits == from_bits);
  }
  if (SignificandBits(from) == 0 || SignificandBits(to) == 0) return false;
  return to == DType::kF64 ||
         (to == DType::kF32 && from != DType::kF64);  // neither 16-bit float holds the other
}

Instruction* ConvertNoOp(Instruction* i, Rewriter&) {
  return i->operand(0)->shape() == i->shape() ? i->operand(0) : nullptr;
}

// Through a type that loses nothing one may as well go directly, unless the way decides what
// happens to values out of range: integers wrap, floats saturate.
Instruction* ConvertConvert(Instruction* i, Rewriter& r) {
  Instruction* x;
  if (!Match(i, m::Convert(m::Convert(m::Op(&x))))) return nullptr;
  const DType from = x->shape().dtype(), to = i->shape().dtype();
  const DType through = i->operand(0)->shape().dtype();
  if (!IsExact(from, through)) return nullptr;
  if (IsIntegral(from) && IsFloat(through) && IsIntegral(to) && !IsExact(from, to)) return nullptr;
  return from == to ? x : r.Add(Opcode::kConvert, i->shape(), {x});
}

Instruction* BitcastBitcast(Instruction* i, Rewriter& r) {
  Instruction* const inner = i->operand(0);
  if (inner->opcode() != i->opcode()) return nullptr;
  Instruction* const x = inner->operand(0);
  if (x->shape() == i->shape()) return x;
  return SameDims(x->shape(), inner->shape()) && SameDims(inner->shape(), i->shape())
             ? r.Add(i->opcode(), i->shape(), {x})
             : nullptr;
}

Instruction* PartOfComplex(Instruction* i, Rewriter&) {
  Instruction* const z = i->operand(0);
  if (z->opcode() != Opcode::kComplex) return nullptr;
  return z->operand(i->opcode() == Opcode::kReal ? 0 : 1);
}

Instruction* ComplexOfParts(Instruction* i, Rewriter&) {
  Instruction *const re = i->operand(0), *const im = i->operand(1);
  const bool parts = re->opcode() == Opcode::kReal && im->opcode() == Opcode::kImag &&
                     re->operand(0) == im->operand(0) && re->operand(0)->shape() == i->shape();
  return parts ? re->operand(0) : nullptr;
}

constexpr Rule kConvertRules[] = {
    {"convert-noop",
     {Opcode::kConvert, Opcode::kBitcastConvert, Opcode::kBitcast, Opcode::kCopy},
     ConvertNoOp,
     "convert(x) => x"},
    {"convert-convert", Opcode::kConvert, ConvertConvert, "f64(f32(x: f16)) => f64(x)"},
    {"bitcast-bitcast", Opcode::kBitcastConvert, BitcastBitcast, "bits(bits(x)) => bits(x)"},
    {"part-of-complex", {Opcode::kReal, Opcode::kImag}, PartOfComplex, "real(complex(x, y)) => x"},
    {"complex-of-parts", Opcode::kComplex, ComplexOfParts, "complex(real(z), imag(z)) => z"},
};

}  // namespace

absl::Span<const Rule> ConvertRules() { return kConvertRules; }

}  // namespace lazuli::lowering
