#include "backend/cpu/codegen/element_ops.h"

#include <array>
#include <bit>
#include <complex>
#include <cstring>
#include <vector>

#include "backend/cpu/codegen/integer_ops.h"
#include "ir/evaluator/scalar_ops.h"
#include "ir/hlo/shapes/shape_inference.h"
#include "ir/recipes/recipes.h"

namespace lazuli::cpu {
namespace {

using hlo::ComparisonDirection;
using hlo::Instruction;
using hlo::Opcode;

bool IsNarrowFloat(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }
bool IsWideFloat(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF64; }

// --- floats and complex numbers: opcode.def's references over FloatValue and ComplexPair

struct NoReference {
  static constexpr bool kNone = true;
};
constexpr NoReference kNoReference;
llvm::Value* ValueOf(NoReference) { return nullptr; }
llvm::Value* ValueOf(MaskValue x) { return x.v; }
template <class S>
llvm::Value* ValueOf(FloatValue<S> x) {
  return x.v;
}
template <class S>
llvm::Value* ValueOf(ComplexPair<S> z) {
  return MakeComplex(*z.re.b, z.re.v, z.im.v);
}

// Null if the opcode has no reference on such values.
template <class V>
llvm::Value* Reference(Opcode opcode, V x, [[maybe_unused]] V y) {
  namespace recipes = hlo::recipes;
  switch (opcode) {
#define LAZULI_OPCODE(name, text, arity, flags, regions, attrs, infer, evaluate, reference) \
  case Opcode::name:                                                                        \
    if constexpr (requires { ValueOf(reference); }) {                                       \
      return ValueOf(reference);                                                            \
    } else {                                                                                \
      return nullptr;                                                                       \
    }
#include "ir/hlo/opcode.def"
#undef LAZULI_OPCODE
  }
  return nullptr;
}

template <class V>
bool HasReference(Opcode opcode) {
  namespace recipes = hlo::recipes;
  switch (opcode) {
#define LAZULI_OPCODE(name, text, arity, flags, regions, attrs, infer, evaluate, reference) \
  case Opcode::name:                                                                        \
    return requires(V x, V y) { ValueOf(reference); } && !requires(V x, V y) { (reference).kNone; };
#include "ir/hlo/opcode.def"
#undef LAZULI_OPCODE
  }
  return false;
}

llvm::Value* RoundToBf16(IrBuilder& b, llvm::Value* x) {
  llvm::Type* ints = WithElement(x->getType(), b.getInt32Ty());
  llvm::Value* bits = b.CreateBitCast(x, ints);
  llvm::Value* odd = b.CreateAnd(b.CreateLShr(bits, 16), llvm::ConstantInt::get(ints, 1));
  llvm::Value* rounded = b.CreateAdd(bits, b.CreateAdd(odd, llvm::ConstantInt::get(ints, 0x7fff)));
  llvm::Value* quiet = b.CreateOr(bits, llvm::ConstantInt::get(ints, 0x00400000));
  rounded = b.CreateSelect(b.CreateFCmpUNO(x, x), quiet, rounded);
  return b.CreateBitCast(b.CreateAnd(rounded, llvm::ConstantInt::get(ints, 0xffff0000)),
                         x->getType());
}

// The fence costs nothing. Without it LLVM 19 makes x > 0 of |x| > 0 in
// isnan(|x|) ? |x| : |x| > 0 ? |x| : 0, because it compares x for the first test.
llvm::Value* EmitAbs(IrBuilder& b, llvm::Value* x) {
  return b.CreateArithmeticFence(b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x), x->getType());
}

llvm::Value* EmitFloat(IrBuilder& b, Opcode opcode, DType dtype, llvm::Value* x, llvm::Value* y) {
  if (opcode == Opcode::kAbs) return EmitAbs(b, x);
  llvm::Value* result =
      dtype == DType::kF64 ? Reference(opcode, FloatValue<double>{&b, x}, FloatValue<double>{&b, y})
                           : Reference(opcode, FloatValue<float>{&b, x}, FloatValue<float>{&b, y});
  if (result->getType()->isIntOrIntVectorTy()) return result;  // is-finite
  return RoundToNarrow(b, dtype, result);
}

llvm::Value* RealPart(IrBuilder& b, llvm::Value* z) { return b.CreateExtractValue(z, 0); }
llvm::Value* ImaginaryPart(IrBuilder& b, llvm::Value* z) { return b.CreateExtractValue(z, 1); }

template <class S>
ComplexPair<S> PairOf(IrBuilder& b, llvm::Value* z) {
  return {{&b, RealPart(b, z)}, {&b, ImaginaryPart(b, z)}};
}

llvm::Value* EmitComplex(IrBuilder& b, Opcode opcode, DType dtype, llvm::Value* x, llvm::Value* y) {
  return dtype == DType::kC128 ? Reference(opcode, PairOf<double>(b, x), PairOf<double>(b, y))
                               : Reference(opcode, PairOf<float>(b, x), PairOf<float>(b, y));
}

// --- compare, convert

llvm::CmpInst::Predicate FloatPredicate(ComparisonDirection direction) {
  switch (direction) {
    case ComparisonDirection::kEq:
      return llvm::CmpInst::FCMP_OEQ;
    case ComparisonDirection::kNe:
      return llvm::CmpInst::FCMP_UNE;
    case ComparisonDirection::kLt:
      return llvm::CmpInst::FCMP_OLT;
    case ComparisonDirection::kLe:
      return llvm::CmpInst::FCMP_OLE;
    case ComparisonDirection::kGt:
      return llvm::CmpInst::FCMP_OGT;
    case ComparisonDirection::kGe:
      return llvm::CmpInst::FCMP_OGE;
  }
  return llvm::CmpInst::BAD_FCMP_PREDICATE;
}

llvm::CmpInst::Predicate IntPredicate(ComparisonDirection direction, bool is_signed) {
  switch (direction) {
    case ComparisonDirection::kEq:
      return llvm::CmpInst::ICMP_EQ;
    case ComparisonDirection::kNe:
      return llvm::CmpInst::ICMP_NE;
    case ComparisonDirection::kLt:
      return is_signed ? llvm::CmpInst::ICMP_SLT : llvm::CmpInst::ICMP_ULT;
    case ComparisonDirection::kLe:
      return is_signed ? llvm::CmpInst::ICMP_SLE : llvm::CmpInst::ICMP_ULE;
    case ComparisonDirection::kGt:
      return is_signed ? llvm::CmpInst::ICMP_SGT : llvm::CmpInst::ICMP_UGT;
    case ComparisonDirection::kGe:
      return is_signed ? llvm::CmpInst::ICMP_SGE : llvm::CmpInst::ICMP_UGE;
  }
  return llvm::CmpInst::BAD_ICMP_PREDICATE;
}

llvm::Value* EmitCompare(IrBuilder& b, const Instruction& compare, llvm::Value* x, llvm::Value* y) {
  const ComparisonDirection direction = compare.attrs_as<hlo::CompareAttrs>().direction;
  const DType dtype = compare.operand(0)->shape().dtype();
  if (IsFloat(dtype)) return b.CreateFCmp(FloatPredicate(direction), x, y);
  if (IsComplex(dtype)) {
    const auto predicate = FloatPredicate(direction);
    llvm::Value* re = b.CreateFCmp(predicate, RealPart(b, x), RealPart(b, y));
    llvm::Value* im = b.CreateFCmp(predicate, ImaginaryPart(b, x), ImaginaryPart(b, y));
    return direction == ComparisonDirection::kEq ? b.CreateAnd(re, im) : b.CreateOr(re, im);
  }
  return b.CreateICmp(IntPredicate(direction, IsSigned(dtype)), x, y);
}

llvm::Value* ConvertToInt(IrBuilder& b, DType from, DType to, llvm::Value* x) {
  llvm::Type* type = WithElement(x->getType(), RegisterType(b, to));
  if (IsFloat(from)) {
    const auto id = IsSigned(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
    return b.CreateIntrinsic(id, {type, x->getType()}, {x});
  }
  return b.CreateIntCast(x, type, IsSigned(from));
}

llvm::Value* EmitConvert(IrBuilder& b, DType from, DType to, llvm::Value* x);

// A real number gets a zero; a complex one loses its imaginary part, unless what is asked is
// whether it is zero.
llvm::Value* ConvertComplex(IrBuilder& b, DType from, DType to, llvm::Value* x) {
  if (!IsComplex(from)) {
    llvm::Value* re = EmitConvert(b, from, hlo::PartType(to), x);
    return MakeComplex(b, re, llvm::Constant::getNullValue(re->getType()));
  }
  const auto part = [&](llvm::Value* p, DType wanted) {
    return EmitConvert(b, hlo::PartType(from), wanted, p);
  };
  if (to == DType::kPred)
    return b.CreateOr(part(RealPart(b, x), to), part(ImaginaryPart(b, x), to));
  if (!IsComplex(to)) return part(RealPart(b, x), to);
  return MakeComplex(b, part(RealPart(b, x), hlo::PartType(to)),
                     part(ImaginaryPart(b, x), hlo::PartType(to)));
}

llvm::Value* EmitConvert(IrBuilder& b, DType from, DType to, llvm::Value* x) {
  if (from == to) return x;
  if (IsComplex(from) || IsComplex(to)) return ConvertComplex(b, from, to, x);
  if (to == DType::kPred) {
    llvm::Value* zero = llvm::Constant::getNullValue(x->getType());
    return IsFloat(from) ? b.CreateFCmpUNE(x, zero) : b.CreateICmpNE(x, zero);
  }
  if (!IsFloat(to)) return ConvertToInt(b, from, to, x);
  llvm::Type* type = WithElement(x->getType(), RegisterType(b, to));
  if (!IsFloat(from)) {
    x = IsSigned(from) ? b.CreateSIToFP(x, type) : b.CreateUIToFP(x, type);
  } else if (from == DType::kF64) {
    x = b.CreateFPTrunc(x, type);
  } else if (to == DType::kF64) {
    x = b.CreateFPExt(x, type);
  }
  return RoundToNarrow(b, to, x);
}

llvm::Value* EmitClamp(IrBuilder& b, DType dtype, absl::Span<llvm::Value* const> operands) {
  llvm::Value* raised = EmitBinary(b, Opcode::kMaximum, dtype, operands[1], operands[0]);
  return EmitBinary(b, Opcode::kMinimum, dtype, raised, operands[2]);
}

// Both parts of values whose parts alternate, and back.
llvm::Value* Deinterleave(IrBuilder& b, llvm::Value* x) {
  const auto width =
      static_cast<int>(llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements() / 2);
  if (width == 1)
    return MakeComplex(b, b.CreateExtractElement(x, uint64_t{0}),
                       b.CreateExtractElement(x, uint64_t{1}));
  std::vector<int> even, odd;
  for (int i = 0; i < width; ++i) {
    even.push_back(2 * i);
    odd.push_back(2 * i + 1);
  }
  return MakeComplex(b, b.CreateShuffleVector(x, even), b.CreateShuffleVector(x, odd));
}

llvm::Value* Interleave(IrBuilder& b, llvm::Value* z) {
  llvm::Value *re = RealPart(b, z), *im = ImaginaryPart(b, z);
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(re->getType());
  if (vector == nullptr) {
    llvm::Value* both = llvm::PoisonValue::get(llvm::FixedVectorType::get(re->getType(), 2));
    both = b.CreateInsertElement(both, re, uint64_t{0});
    return b.CreateInsertElement(both, im, uint64_t{1});
  }
  const auto width = static_cast<int>(vector->getNumElements());
  std::vector<int> order;
  for (int i = 0; i < width; ++i) {
    order.push_back(i);
    order.push_back(width + i);
  }
  return b.CreateShuffleVector(re, im, order);
}

bool SupportsBitcast(const Instruction& i) {
  const Shape& from = i.operand(0)->shape();
  return SameDims(from, i.shape()) && ByteWidth(from.dtype()) == ByteWidth(i.shape().dtype()) &&
         !IsNarrowFloat(from.dtype()) && !IsNarrowFloat(i.shape().dtype()) &&
         from.dtype() != DType::kPred && i.shape().dtype() != DType::kPred &&
         !IsComplex(from.dtype()) && !IsComplex(i.shape().dtype());
}

bool SupportsConvert(DType from, DType to) {
  const bool from_double = from == DType::kF64 || from == DType::kC128;
  return !(from_double && IsNarrowFloat(to));
}

bool SupportsReference(Opcode opcode, DType dtype) {
  if (IsComplex(dtype)) return HasReference<ComplexPair<float>>(opcode);
  if (IsNarrowFloat(dtype) && opcode == Opcode::kComplex) return false;
  return IsFloat(dtype) ? HasReference<FloatValue<float>>(opcode) : SupportsInteger(opcode, dtype);
}

}  // namespace

bool SupportsRegister(DType dtype) {
  switch (dtype) {
    case DType::kPred:
    case DType::kS8:
    case DType::kS16:
    case DType::kS32:
    case DType::kS64:
    case DType::kU8:
    case DType::kU16:
    case DType::kU32:
    case DType::kU64:
      return true;
    default:
      return IsWideFloat(dtype) || IsNarrowFloat(dtype) || IsComplex(dtype);
  }
}

bool SupportsElement(const Instruction& i) {
  if (!i.shape().IsArray() || !SupportsRegister(i.shape().dtype())) return false;
  for (const Instruction* operand : i.operands()) {
    if (!operand->shape().IsArray() || !SupportsRegister(operand->shape().dtype())) return false;
  }
  switch (i.opcode()) {
    case Opcode::kCopy:
    case Opcode::kSelect:
    case Opcode::kClamp:
      return true;
    case Opcode::kCompare:
      return i.attrs_as<hlo::CompareAttrs>().type != hlo::ComparisonType::kTotalOrder;
    case Opcode::kConvert:
      return SupportsConvert(i.operand(0)->shape().dtype(), i.shape().dtype());
    case Opcode::kBitcastConvert:
      return SupportsBitcast(i);
    default:
      return i.IsElementwise() && i.operand_count() > 0 &&
             SupportsReference(i.opcode(), i.operand(0)->shape().dtype());
  }
}

llvm::Value* EmitBinary(IrBuilder& b, Opcode opcode, DType dtype, llvm::Value* x, llvm::Value* y) {
  if (IsComplex(dtype)) return EmitComplex(b, opcode, dtype, x, y);
  return IsFloat(dtype) ? EmitFloat(b, opcode, dtype, x, y) : EmitInteger(b, opcode, dtype, x, y);
}

llvm::Value* EmitElement(IrBuilder& b, const Instruction& i,
                         absl::Span<llvm::Value* const> operands) {
  const DType from = i.operand(0)->shape().dtype();
  switch (i.opcode()) {
    case Opcode::kCopy:
      return operands[0];
    case Opcode::kSelect:
      return ForEachPart(b, operands.subspan(1), [&](absl::Span<llvm::Value* const> parts) {
        return b.CreateSelect(operands[0], parts[0], parts[1]);
      });
    case Opcode::kClamp:
      return EmitClamp(b, i.shape().dtype(), operands);
    case Opcode::kCompare:
      return EmitCompare(b, i, operands[0], operands[1]);
    case Opcode::kConvert:
      return EmitConvert(b, from, i.shape().dtype(), operands[0]);
    case Opcode::kBitcastConvert:
      return b.CreateBitCast(
          operands[0], WithElement(operands[0]->getType(), RegisterType(b, i.shape().dtype())));
    default:
      return EmitBinary(b, i.opcode(), from, operands[0],
                        operands.size() > 1 ? operands[1] : operands[0]);
  }
}

llvm::Value* RoundToNarrow(IrBuilder& b, DType dtype, llvm::Value* x) {
  if (dtype == DType::kBF16) return RoundToBf16(b, x);
  if (dtype != DType::kF16) return x;
  return b.CreateFPExt(b.CreateFPTrunc(x, WithElement(x->getType(), b.getHalfTy())), x->getType());
}

llvm::Value* MakeComplex(IrBuilder& b, llvm::Value* re, llvm::Value* im) {
  llvm::Type* type = llvm::StructType::get(re->getType(), im->getType());
  return b.CreateInsertValue(b.CreateInsertValue(llvm::PoisonValue::get(type), re, 0), im, 1);
}

llvm::Value* ForEachPart(IrBuilder& b, absl::Span<llvm::Value* const> values,
                         absl::FunctionRef<llvm::Value*(absl::Span<llvm::Value* const>)> f) {
  if (!values[0]->getType()->isStructTy()) return f(values);
  std::vector<llvm::Value*> re, im;
  for (llvm::Value* z : values) {
    re.push_back(RealPart(b, z));
    im.push_back(ImaginaryPart(b, z));
  }
  llvm::Value* real = f(re);
  return MakeComplex(b, real, f(im));
}

llvm::Value* SameBits(IrBuilder& b, llvm::Value* x, llvm::Value* y) {
  if (x->getType()->isStructTy()) {
    return b.CreateAnd(SameBits(b, RealPart(b, x), RealPart(b, y)),
                       SameBits(b, ImaginaryPart(b, x), ImaginaryPart(b, y)));
  }
  llvm::Type* bits = b.getIntNTy(x->getType()->getScalarSizeInBits());
  return b.CreateICmpEQ(b.CreateBitCast(x, bits), b.CreateBitCast(y, bits));
}

llvm::Type* RegisterType(IrBuilder& b, DType dtype) {
  if (IsComplex(dtype)) {
    llvm::Type* part = RegisterType(b, hlo::PartType(dtype));
    return llvm::StructType::get(part, part);
  }
  if (dtype == DType::kPred) return b.getInt1Ty();
  if (dtype == DType::kF64) return b.getDoubleTy();
  if (IsFloat(dtype)) return b.getFloatTy();
  return b.getIntNTy(static_cast<unsigned>(ByteWidth(dtype)) * 8);
}

llvm::Type* MemoryType(IrBuilder& b, DType dtype, int width) {
  const bool is_complex = IsComplex(dtype);
  if (width == 1 && !is_complex) return MemoryType(b, dtype);
  return llvm::FixedVectorType::get(MemoryType(b, is_complex ? hlo::PartType(dtype) : dtype),
                                    static_cast<unsigned>(is_complex ? 2 * width : width));
}

llvm::Align MemoryAlign(DType dtype) {
  return llvm::Align(static_cast<uint64_t>(ByteWidth(dtype) / (IsComplex(dtype) ? 2 : 1)));
}

llvm::Type* MemoryType(IrBuilder& b, DType dtype) {
  if (IsComplex(dtype)) return MemoryType(b, dtype, 1);
  if (dtype == DType::kF64) return b.getDoubleTy();
  if (dtype == DType::kF32) return b.getFloatTy();
  if (dtype == DType::kF16) return b.getHalfTy();
  return b.getIntNTy(static_cast<unsigned>(ByteWidth(dtype)) * 8);
}

llvm::Value* FromMemory(IrBuilder& b, DType dtype, llvm::Value* x) {
  switch (dtype) {
    case DType::kPred:
      return b.CreateICmpNE(x, llvm::Constant::getNullValue(x->getType()));
    case DType::kF16:
      return b.CreateFPExt(x, WithElement(x->getType(), b.getFloatTy()));
    case DType::kBF16: {
      llvm::Value* wide = b.CreateZExt(x, WithElement(x->getType(), b.getInt32Ty()));
      return b.CreateBitCast(b.CreateShl(wide, 16), WithElement(x->getType(), b.getFloatTy()));
    }
    default:
      return IsComplex(dtype) ? Deinterleave(b, x) : x;
  }
}

llvm::Value* ToMemory(IrBuilder& b, DType dtype, llvm::Value* x) {
  switch (dtype) {
    case DType::kPred:
      return b.CreateZExt(x, WithElement(x->getType(), b.getInt8Ty()));
    case DType::kF16:
      return b.CreateFPTrunc(x, WithElement(x->getType(), b.getHalfTy()));
    case DType::kBF16: {
      llvm::Value* bits = b.CreateBitCast(x, WithElement(x->getType(), b.getInt32Ty()));
      return b.CreateTrunc(b.CreateLShr(bits, 16), WithElement(x->getType(), b.getInt16Ty()));
    }
    default:
      return IsComplex(dtype) ? Interleave(b, x) : x;
  }
}

llvm::Constant* ScalarConstant(IrBuilder& b, const Literal& literal) {
  const DType dtype = literal.shape().dtype();
  if (IsComplex(dtype)) {
    const auto pair = [](auto z) {
      return std::array<llvm::APFloat, 2>{llvm::APFloat(z.real()), llvm::APFloat(z.imag())};
    };
    const auto parts = dtype == DType::kC128 ? pair(literal.data<std::complex<double>>()[0])
                                             : pair(literal.data<std::complex<float>>()[0]);
    return llvm::ConstantStruct::getAnon({llvm::ConstantFP::get(b.getContext(), parts[0]),
                                          llvm::ConstantFP::get(b.getContext(), parts[1])});
  }
  llvm::Type* type = RegisterType(b, dtype);
  if (IsFloat(dtype)) {
    // Exact: every float is a double, and NaN keeps its sign and payload's high bits.
    if (dtype == DType::kF32)
      return llvm::ConstantFP::get(type, llvm::APFloat(literal.data<float>()[0]));
    if (dtype == DType::kF64)
      return llvm::ConstantFP::get(type, llvm::APFloat(literal.data<double>()[0]));
    return llvm::ConstantFP::get(type, llvm::APFloat(static_cast<float>(literal.AsDouble(0))));
  }
  uint64_t bits = 0;
  std::memcpy(&bits, literal.raw(), static_cast<std::size_t>(ByteWidth(dtype)));
  return llvm::ConstantInt::get(type, dtype == DType::kPred ? bits != 0 : bits);
}

}  // namespace lazuli::cpu
