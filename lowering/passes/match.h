// Pattern matching over instructions:
//
//   hlo::Instruction *x, *y;
//   if (Match(i, m::Add(m::Op(&x), m::Negate(m::Op(&y))))) ...  // x + -y or -y + x
//   if (Match(i, m::Multiply(m::Op(&x), m::Scalar(1)))) ...     // x * 1 or 1 * x
//   if (Match(i, m::Maximum(m::Op(&x), m::Splat()))) ...        // x and a constant
//
// A pattern is a value. Matching allocates nothing and looks only as deep as the pattern is written.
//
//   m::Op()          any instruction
//   m::Op(&x)        any instruction, which is bound to x
//   m::Is(i)         the instruction i, which is known before the match
//   m::Add()         an add, whatever its operands
//   m::Add(p, q)     an add whose operands match p and q; for a commutative opcode also q and p
//   m::Add(&i, p, q) the same, and the add is bound to i
//   m::OneUse(p)     p, if one instruction uses it and it is not the root
//   m::Constant(&c)  a constant
//   m::Scalar(v)     an array whose elements all are v: a constant of one value, or the broadcast of
//                    a scalar constant
//   m::Splat(&c)     such an array of any value; c is bound to the constant
//
// m::Scalar compares values as the dtype holds them, and tells -0.0 from 0.0. After a match that
// failed, what was bound is unspecified.
#pragma once

#include <cstddef>
#include <tuple>
#include <utility>

#include "ir/hlo/module.h"

namespace lazuli::lowering {

// The constant whose first element is every element of `i`: a constant of one value, or the scalar
// constant that `i` broadcasts; null if `i` is neither. Constants of more than 64 elements are not
// searched.
const hlo::Instruction* SplatConstant(const hlo::Instruction* i);
// Whether all elements of `i` are this value (see m::Scalar); false for complex types.
bool IsSplatOf(const hlo::Instruction* i, double value);

template <class Pattern>
bool Match(hlo::Instruction* i, const Pattern& pattern) {
  return pattern.Matches(i);
}

namespace m {

struct OpPattern {
  hlo::Instruction** bind = nullptr;
  bool Matches(hlo::Instruction* i) const {
    if (bind != nullptr) *bind = i;
    return true;
  }
};
inline OpPattern Op() { return {}; }
inline OpPattern Op(hlo::Instruction** bind) { return {bind}; }

struct IsPattern {
  const hlo::Instruction* expected;
  bool Matches(const hlo::Instruction* i) const { return i == expected; }
};
inline IsPattern Is(const hlo::Instruction* expected) { return {expected}; }

struct ScalarPattern {
  double value;
  bool Matches(const hlo::Instruction* i) const { return IsSplatOf(i, value); }
};
inline ScalarPattern Scalar(double value) { return {value}; }

struct SplatPattern {
  const hlo::Instruction** bind;
  bool Matches(const hlo::Instruction* i) const {
    const hlo::Instruction* constant = SplatConstant(i);
    if (bind != nullptr) *bind = constant;
    return constant != nullptr;
  }
};
inline SplatPattern Splat(const hlo::Instruction** bind = nullptr) { return {bind}; }

template <class P>
struct OneUsePattern {
  P pattern;
  bool Matches(hlo::Instruction* i) const {
    return i->users().size() == 1 && !i->IsRoot() && pattern.Matches(i);
  }
};
template <class P>
OneUsePattern<P> OneUse(P pattern) {
  return {pattern};
}

// An opcode with patterns for all of its operands, or with none for any operands.
template <class... P>
struct InstructionPattern {
  hlo::Opcode opcode;
  hlo::Instruction** bind;
  std::tuple<P...> operands;

  bool Matches(hlo::Instruction* i) const {
    if (i->opcode() != opcode || !OperandsMatch(i)) return false;
    if (bind != nullptr) *bind = i;
    return true;
  }

 private:
  bool OperandsMatch(hlo::Instruction* i) const {
    if constexpr (sizeof...(P) == 0) {
      return true;
    } else {
      if (i->operand_count() != static_cast<int64_t>(sizeof...(P))) return false;
      if (InOrder(i, std::index_sequence_for<P...>())) return true;
      if constexpr (sizeof...(P) == 2) {
        return hlo::Traits(opcode).commutative && std::get<0>(operands).Matches(i->operand(1)) &&
               std::get<1>(operands).Matches(i->operand(0));
      }
      return false;
    }
  }
  template <std::size_t... k>
  bool InOrder(hlo::Instruction* i, std::index_sequence<k...>) const {
    return (std::get<k>(operands).Matches(i->operand(static_cast<int64_t>(k))) && ...);
  }
};

template <class... P>
InstructionPattern<P...> Of(hlo::Opcode opcode, hlo::Instruction** bind, P... operands) {
  return {opcode, bind, std::tuple<P...>(operands...)};
}

#define LAZULI_PATTERN(name)                               \
  template <class... P>                                    \
  auto name(hlo::Instruction** bind, P... operands) {      \
    return Of(hlo::Opcode::k##name, bind, operands...);    \
  }                                                        \
  template <class... P>                                    \
  auto name(P... operands) {                               \
    return Of(hlo::Opcode::k##name, nullptr, operands...); \
  }
LAZULI_PATTERN(Abs)
LAZULI_PATTERN(Add)
LAZULI_PATTERN(And)
LAZULI_PATTERN(Bitcast)
LAZULI_PATTERN(BitcastConvert)
LAZULI_PATTERN(Broadcast)
LAZULI_PATTERN(Ceil)
LAZULI_PATTERN(Clamp)
LAZULI_PATTERN(Compare)
LAZULI_PATTERN(Concatenate)
LAZULI_PATTERN(Constant)
LAZULI_PATTERN(Convert)
LAZULI_PATTERN(Convolution)
LAZULI_PATTERN(Copy)
LAZULI_PATTERN(Divide)
LAZULI_PATTERN(Dot)
LAZULI_PATTERN(Exponential)
LAZULI_PATTERN(Floor)
LAZULI_PATTERN(GetTupleElement)
LAZULI_PATTERN(Iota)
LAZULI_PATTERN(Log)
LAZULI_PATTERN(Maximum)
LAZULI_PATTERN(Minimum)
LAZULI_PATTERN(Multiply)
LAZULI_PATTERN(Negate)
LAZULI_PATTERN(Not)
LAZULI_PATTERN(Or)
LAZULI_PATTERN(Pad)
LAZULI_PATTERN(Parameter)
LAZULI_PATTERN(Reduce)
LAZULI_PATTERN(ReduceWindow)
LAZULI_PATTERN(Reshape)
LAZULI_PATTERN(Reverse)
LAZULI_PATTERN(Select)
LAZULI_PATTERN(Slice)
LAZULI_PATTERN(Subtract)
LAZULI_PATTERN(Transpose)
LAZULI_PATTERN(Tuple)
LAZULI_PATTERN(Xor)
#undef LAZULI_PATTERN

}  // namespace m
}  // namespace lazuli::lowering
