// Uses of every opcode with attributes at random: those that degenerate_uses.h proposes over shapes at
// random, of which some numbers, lists of dimensions, windows, labels and operands' shapes are then
// changed - to neighbours, zeros, negative numbers and the extremes of int64.
#pragma once

#include <cstdint>
#include <optional>
#include <random>

#include "tests/backend/clients/degenerate_uses.h"

namespace lazuli {

class RandomUses {
 public:
  explicit RandomUses(uint64_t seed) : random_(seed) {}

  // A use of the opcode over elements of some type; none if nothing was proposed over what was drawn.
  std::optional<DegenerateUse> Next(hlo::Opcode opcode);

 private:
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  ir::Shape DrawShape();
  int64_t DrawNumber(int64_t old);
  void Change(DegenerateUse& use);
  void ChangeAttrs(hlo::Attrs& attrs);
  void ChangeOperand(DegenerateUse::Operand& operand);

  void ChangeMember(int64_t& number) { number = DrawNumber(number); }
  void ChangeMember(bool& flag) { flag = !flag; }
  void ChangeMember(float& number);
  void ChangeMember(ir::Dims& numbers);
  void ChangeMember(hlo::Window& window);
  void ChangeMember(hlo::ConvDims& labels);
  template <class T>
  void ChangeMember(T& other);

  std::mt19937_64 random_;
};

}  // namespace lazuli
