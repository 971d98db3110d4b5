// The tables of algebraic simplifications: one row each, one file for each family of opcodes.
//
//   {"add-zero", Opcode::kAdd, AddZero, "x + 0 => x (floats: -0.0)"},
//
// A rule looks at one instruction and returns the value that replaces it, or null. It must be right
// bit for bit (NaN payloads excepted), and the value must weigh less than the instruction
// (weight.h), or rewriting might not end. It looks no further than at its operands' operands. It
// adds instructions through the rewriter and neither replaces nor erases any; the driver
// (simplify.h) does, and checks the shape.
#pragma once

#include <array>
#include <initializer_list>
#include <string_view>

#include "absl/types/span.h"

#include "ir/hlo/module.h"
#include "lowering/passes/rewriter.h"

namespace lazuli::lowering {

// The opcodes a rule looks at: a few, or every elementwise or commutative one.
class OpcodeSet {
 public:
  constexpr OpcodeSet(hlo::Opcode opcode)
      : opcodes_{opcode}, count_(1) {}  // NOLINT(google-explicit-constructor)
  constexpr OpcodeSet(std::initializer_list<hlo::Opcode> opcodes) {
    for (hlo::Opcode opcode : opcodes) opcodes_[count_++] = opcode;
  }
  static constexpr OpcodeSet Elementwise() { return OpcodeSet(&hlo::OpcodeTraits::elementwise); }
  static constexpr OpcodeSet Commutative() { return OpcodeSet(&hlo::OpcodeTraits::commutative); }
  bool contains(hlo::Opcode opcode) const {
    if (property_ != nullptr) return hlo::Traits(opcode).*property_;
    for (std::size_t i = 0; i < count_; ++i) {
      if (opcodes_[i] == opcode) return true;
    }
    return false;
  }

 private:
  constexpr explicit OpcodeSet(bool hlo::OpcodeTraits::* property) : property_(property) {}

  std::array<hlo::Opcode, 8> opcodes_{};
  std::size_t count_ = 0;
  bool hlo::OpcodeTraits::* property_ = nullptr;
};

struct Rule {
  std::string_view name;
  OpcodeSet opcodes;
  hlo::Instruction* (*apply)(hlo::Instruction* i, Rewriter& r);
  std::string_view doc = {};  // "x + 0 => x"
};

// The dimensions of a broadcast, transpose, reduce, ...
inline const Dims& DimensionsOf(const hlo::Instruction* i) {
  return i->attrs_as<hlo::DimensionsAttrs>().dimensions;
}

absl::Span<const Rule> ArithmeticRules();
absl::Span<const Rule> LogicalRules();
absl::Span<const Rule> ConvertRules();
absl::Span<const Rule> ShapeRules();  // reshape, transpose, broadcast, reverse
absl::Span<const Rule> SliceRules();  // slice, pad, concatenate and their dynamic forms
absl::Span<const Rule> ReductionRules();
absl::Span<const Rule> ControlRules();  // tuples, conditionals

// All tables, in this order; the first rule that applies wins.
absl::Span<const Rule> AllRules();

}  // namespace lazuli::lowering
