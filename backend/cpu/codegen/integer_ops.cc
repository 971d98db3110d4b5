#include "backend/cpu/codegen/integer_ops.h"

namespace lazuli::cpu {
namespace {

using hlo::Opcode;

llvm::Constant* Number(llvm::Value* like, int64_t value) {
  return llvm::ConstantInt::getSigned(like->getType(), value);
}

// x divided by d, lane by lane: processors have no other division of integers by what they do not know.
//
// As one instruction on vectors it loses its guard: LLVM 19 turns x / select(c, 1, y) into
// select(c, x, x / y) for those of AVX-512, and so divides by y in all lanes. It freezes nothing
// there either that it sees to be no poison.
template <class Divide>
llvm::Value* ByLane(IrBuilder& b, llvm::Value* x, llvm::Value* d, Divide&& divide) {
  const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  if (vector == nullptr || llvm::isa<llvm::Constant>(d)) return divide(x, d);
  llvm::Value* result = llvm::PoisonValue::get(x->getType());
  for (uint64_t lane = 0; lane < vector->getNumElements(); ++lane) {
    llvm::Value* quotient =
        divide(b.CreateExtractElement(x, lane), b.CreateExtractElement(d, lane));
    result = b.CreateInsertElement(result, quotient, lane);
  }
  return result;
}

// Quotient or remainder with a divisor that never traps; `zero` and `minus_one` are the results for
// those divisors. The divisor is frozen, so that the tests and the division see one number.
template <class Divide>
llvm::Value* Guarded(IrBuilder& b, bool is_signed, llvm::Value* x, llvm::Value* y,
                     llvm::Value* zero, llvm::Value* minus_one, Divide&& divide) {
  if (!llvm::isa<llvm::Constant>(y)) y = b.CreateFreeze(y);
  llvm::Value* is_zero = b.CreateICmpEQ(y, Number(y, 0));
  llvm::Value* is_minus_one = b.CreateICmpEQ(y, Number(y, -1));
  llvm::Value* bad = is_signed ? b.CreateOr(is_zero, is_minus_one) : is_zero;
  llvm::Value* result = ByLane(b, x, b.CreateSelect(bad, Number(y, 1), y), divide);
  if (is_signed) result = b.CreateSelect(is_minus_one, minus_one, result);
  return b.CreateSelect(is_zero, zero, result);
}

llvm::Value* Divide(IrBuilder& b, bool is_signed, llvm::Value* x, llvm::Value* y) {
  const auto divide = [&](llvm::Value* n, llvm::Value* d) {
    return is_signed ? b.CreateSDiv(n, d) : b.CreateUDiv(n, d);
  };
  return Guarded(b, is_signed, x, y, Number(x, -1), b.CreateNeg(x), divide);
}

llvm::Value* Remainder(IrBuilder& b, bool is_signed, llvm::Value* x, llvm::Value* y) {
  const auto divide = [&](llvm::Value* n, llvm::Value* d) {
    return is_signed ? b.CreateSRem(n, d) : b.CreateURem(n, d);
  };
  return Guarded(b, is_signed, x, y, x, Number(x, 0), divide);
}

llvm::Value* Shift(IrBuilder& b, Opcode opcode, llvm::Value* x, llvm::Value* y) {
  const auto width = static_cast<int64_t>(x->getType()->getScalarSizeInBits());
  llvm::Value* in_range = b.CreateICmpULT(y, Number(y, width));
  if (opcode == Opcode::kShiftRightArithmetic) {
    return b.CreateAShr(x, b.CreateSelect(in_range, y, Number(y, width - 1)));
  }
  llvm::Value* amount = b.CreateSelect(in_range, y, Number(y, 0));
  llvm::Value* shifted =
      opcode == Opcode::kShiftLeft ? b.CreateShl(x, amount) : b.CreateLShr(x, amount);
  return b.CreateSelect(in_range, shifted, Number(x, 0));
}

llvm::Value* Sign(IrBuilder& b, bool is_signed, llvm::Value* x) {
  llvm::Value* positive = b.CreateZExt(b.CreateICmpNE(x, Number(x, 0)), x->getType());
  if (!is_signed) return positive;
  return b.CreateSelect(b.CreateICmpSLT(x, Number(x, 0)), Number(x, -1), positive);
}

llvm::Value* Extreme(IrBuilder& b, Opcode opcode, bool is_signed, llvm::Value* x, llvm::Value* y) {
  const bool max = opcode == Opcode::kMaximum;
  return b.CreateBinaryIntrinsic(max ? (is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax)
                                     : (is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin),
                                 x, y);
}

// A sum of pred saturates and a product is an and.
llvm::Value* EmitPred(IrBuilder& b, Opcode opcode, llvm::Value* x, llvm::Value* y) {
  switch (opcode) {
    case Opcode::kAdd:
    case Opcode::kMaximum:
    case Opcode::kOr:
      return b.CreateOr(x, y);
    case Opcode::kMultiply:
    case Opcode::kMinimum:
    case Opcode::kAnd:
      return b.CreateAnd(x, y);
    case Opcode::kSubtract:
    case Opcode::kXor:
      return b.CreateXor(x, y);
    case Opcode::kDivide:
    case Opcode::kPower:
      return b.CreateOr(x, b.CreateNot(y));
    case Opcode::kNot:
      return b.CreateNot(x);
    case Opcode::kNegate:
      return x;
    default:
      return nullptr;
  }
}

}  // namespace

bool SupportsInteger(Opcode opcode, DType dtype) {
  switch (opcode) {
    case Opcode::kAdd:
    case Opcode::kSubtract:
    case Opcode::kMultiply:
    case Opcode::kDivide:
    case Opcode::kMaximum:
    case Opcode::kMinimum:
    case Opcode::kAnd:
    case Opcode::kOr:
    case Opcode::kXor:
    case Opcode::kNot:
    case Opcode::kNegate:
      return true;
    case Opcode::kPower:
      return dtype == DType::kPred;
    case Opcode::kRemainder:
    case Opcode::kAbs:
    case Opcode::kSign:
    case Opcode::kPopcnt:
    case Opcode::kCountLeadingZeros:
    case Opcode::kShiftLeft:
    case Opcode::kShiftRightArithmetic:
    case Opcode::kShiftRightLogical:
      return dtype != DType::kPred;
    default:
      return false;
  }
}

llvm::Value* EmitInteger(IrBuilder& b, Opcode opcode, DType dtype, llvm::Value* x, llvm::Value* y) {
  if (dtype == DType::kPred) return EmitPred(b, opcode, x, y);
  const bool is_signed = IsSigned(dtype);
  switch (opcode) {
    case Opcode::kAdd:
      return b.CreateAdd(x, y);
    case Opcode::kSubtract:
      return b.CreateSub(x, y);
    case Opcode::kMultiply:
      return b.CreateMul(x, y);
    case Opcode::kDivide:
      return Divide(b, is_signed, x, y);
    case Opcode::kRemainder:
      return Remainder(b, is_signed, x, y);
    case Opcode::kNegate:
      return b.CreateNeg(x);
    case Opcode::kAbs:
      return is_signed ? b.CreateSelect(b.CreateICmpSLT(x, Number(x, 0)), b.CreateNeg(x), x) : x;
    case Opcode::kSign:
      return Sign(b, is_signed, x);
    case Opcode::kMaximum:
    case Opcode::kMinimum:
      return Extreme(b, opcode, is_signed, x, y);
    case Opcode::kAnd:
      return b.CreateAnd(x, y);
    case Opcode::kOr:
      return b.CreateOr(x, y);
    case Opcode::kXor:
      return b.CreateXor(x, y);
    case Opcode::kNot:
      return b.CreateNot(x);
    case Opcode::kPopcnt:
      return b.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, x);
    case Opcode::kCountLeadingZeros:
      return b.CreateIntrinsic(llvm::Intrinsic::ctlz, {x->getType()}, {x, b.getFalse()});
    case Opcode::kShiftLeft:
    case Opcode::kShiftRightArithmetic:
    case Opcode::kShiftRightLogical:
      return Shift(b, opcode, x, y);
    default:
      return nullptr;
  }
}

}  // namespace lazuli::cpu
