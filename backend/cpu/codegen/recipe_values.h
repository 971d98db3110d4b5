// Recipe values over LLVM: the recipes of ir/recipes/recipes.h run on these and so become
// instructions, scalar or vector.
//
// FloatValue<float> and FloatValue<double> hold any LLVM value of that element type; operators
// append to the builder they carry.
#pragma once

#include <type_traits>

#include "llvm/IR/IRBuilder.h"

#include "ir/evaluator/complex_ops.h"

namespace lazuli::cpu {

using IrBuilder = llvm::IRBuilder<>;

// `like`'s shape (scalar, or vector of a width) with another element type.
inline llvm::Type* WithElement(llvm::Type* like, llvm::Type* element) {
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like)) {
    return llvm::FixedVectorType::get(element, vector->getNumElements());
  }
  return element;
}

struct MaskValue {
  IrBuilder* b;
  llvm::Value* v;
  friend MaskValue operator&(MaskValue x, MaskValue y) { return {x.b, x.b->CreateAnd(x.v, y.v)}; }
  friend MaskValue operator|(MaskValue x, MaskValue y) { return {x.b, x.b->CreateOr(x.v, y.v)}; }
  friend MaskValue operator!(MaskValue x) { return {x.b, x.b->CreateNot(x.v)}; }
};

struct IntValue {
  IrBuilder* b;
  llvm::Value* v;
  friend IntValue operator+(IntValue x, IntValue y) { return {x.b, x.b->CreateAdd(x.v, y.v)}; }
  friend IntValue operator-(IntValue x, IntValue y) { return {x.b, x.b->CreateSub(x.v, y.v)}; }
  friend IntValue operator&(IntValue x, IntValue y) { return {x.b, x.b->CreateAnd(x.v, y.v)}; }
  friend IntValue operator|(IntValue x, IntValue y) { return {x.b, x.b->CreateOr(x.v, y.v)}; }
  friend IntValue operator^(IntValue x, IntValue y) { return {x.b, x.b->CreateXor(x.v, y.v)}; }
  friend MaskValue operator==(IntValue x, IntValue y) { return {x.b, x.b->CreateICmpEQ(x.v, y.v)}; }
  friend MaskValue operator<(IntValue x, IntValue y) { return {x.b, x.b->CreateICmpSLT(x.v, y.v)}; }
};

template <class S>
struct FloatValue {
  IrBuilder* b;
  llvm::Value* v;
  friend FloatValue operator+(FloatValue x, FloatValue y) {
    return {x.b, x.b->CreateFAdd(x.v, y.v)};
  }
  friend FloatValue operator-(FloatValue x, FloatValue y) {
    return {x.b, x.b->CreateFSub(x.v, y.v)};
  }
  friend FloatValue operator*(FloatValue x, FloatValue y) {
    return {x.b, x.b->CreateFMul(x.v, y.v)};
  }
  friend FloatValue operator/(FloatValue x, FloatValue y) {
    return {x.b, x.b->CreateFDiv(x.v, y.v)};
  }
  friend FloatValue operator-(FloatValue x) { return {x.b, x.b->CreateFNeg(x.v)}; }
  friend MaskValue operator==(FloatValue x, FloatValue y) {
    return {x.b, x.b->CreateFCmpOEQ(x.v, y.v)};
  }
  friend MaskValue operator!=(FloatValue x, FloatValue y) {
    return {x.b, x.b->CreateFCmpUNE(x.v, y.v)};
  }
  friend MaskValue operator<(FloatValue x, FloatValue y) {
    return {x.b, x.b->CreateFCmpOLT(x.v, y.v)};
  }
  friend MaskValue operator<=(FloatValue x, FloatValue y) {
    return {x.b, x.b->CreateFCmpOLE(x.v, y.v)};
  }
  friend MaskValue operator>(FloatValue x, FloatValue y) {
    return {x.b, x.b->CreateFCmpOGT(x.v, y.v)};
  }
  friend MaskValue operator>=(FloatValue x, FloatValue y) {
    return {x.b, x.b->CreateFCmpOGE(x.v, y.v)};
  }
};

template <class S>
struct ComplexPair {
  using value_type = FloatValue<S>;
  value_type re, im;
  value_type real() const { return re; }
  value_type imag() const { return im; }
};

}  // namespace lazuli::cpu

namespace lazuli::hlo::recipes {

template <class S>
struct ComplexOver<cpu::FloatValue<S>> {
  using Type = cpu::ComplexPair<S>;
};

template <class S>
struct Ops<cpu::FloatValue<S>> {
  using V = cpu::FloatValue<S>;
  using Scalar = S;
  using Int = cpu::IntValue;
  using Mask = cpu::MaskValue;

  static V Constant(V like, S value) {
    // Through the bits: a NaN keeps its payload.
    return {like.b, llvm::ConstantFP::get(like.v->getType(), llvm::APFloat(value))};
  }
  static Int IntConstant(V like, int64_t value) {
    return {like.b, llvm::ConstantInt::getSigned(IntType(like), value)};
  }
  static V Fma(V x, V y, V z) {
    return {x.b, x.b->CreateIntrinsic(llvm::Intrinsic::fma, {x.v->getType()}, {x.v, y.v, z.v})};
  }
  static V Sqrt(V x) { return {x.b, x.b->CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x.v)}; }
  static V Floor(V x) { return {x.b, x.b->CreateUnaryIntrinsic(llvm::Intrinsic::floor, x.v)}; }
  static V RoundEven(V x) {
    return {x.b, x.b->CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, x.v)};
  }
  static V Fmod(V x, V y) { return {x.b, x.b->CreateFRem(x.v, y.v)}; }
  static V Select(Mask mask, V yes, V no) {
    return {yes.b, yes.b->CreateSelect(mask.v, yes.v, no.v)};
  }
  static Int SelectInt(Mask mask, Int yes, Int no) {
    return {yes.b, yes.b->CreateSelect(mask.v, yes.v, no.v)};
  }
  static Int ToBits(V x) { return {x.b, x.b->CreateBitCast(x.v, IntType(x))}; }
  static V FromBits(Int x) {
    llvm::Type* element = std::is_same_v<S, float> ? x.b->getFloatTy() : x.b->getDoubleTy();
    return {x.b, x.b->CreateBitCast(x.v, cpu::WithElement(x.v->getType(), element))};
  }
  static Int ShiftLeft(Int x, int n) {
    return {x.b, x.b->CreateShl(x.v, static_cast<uint64_t>(n))};
  }
  static Int ShiftRight(Int x, int n) {
    return {x.b, x.b->CreateLShr(x.v, static_cast<uint64_t>(n))};
  }
  static Int ShiftRightArithmetic(Int x, int n) {
    return {x.b, x.b->CreateAShr(x.v, static_cast<uint64_t>(n))};
  }

 private:
  static llvm::Type* IntType(V like) {
    return cpu::WithElement(like.v->getType(), like.b->getIntNTy(sizeof(S) * 8));
  }
};

}  // namespace lazuli::hlo::recipes
