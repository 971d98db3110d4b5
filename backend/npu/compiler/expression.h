// Expressions over streams: what a vector program computes for one element.
//
// Elementwise HLO becomes nodes, equal ones once; the nodes reachable from one of them, down to
// loads, are a vector program if they need no more than three streams and 32 registers (runs.h
// divides them).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/types/span.h"

#include "backend/npu/compiler/view.h"
#include "backend/npu/sim/isa.h"
#include "ir/hlo/module.h"

namespace lazuli::npu {

// The node of a value; of one of 64 bits the nodes of its halves.
struct ValueNodes {
  int low = -1, high = -1;
  bool wide() const { return high >= 0; }
};

// The arithmetic of micro-operations.
enum Arithmetic : uint8_t { kFloats, kSigned, kUnsigned };

struct Node {
  enum class Kind : uint8_t { kLoad, kLiteral, kOp };
  Kind kind;
  Micro op = Micro::kMov;
  int type = kFloats;
  int a = -1, b = -1, c = -1;  // operands
  uint32_t literal = 0;
  int load = -1;  // which stream
  auto operator<=>(const Node&) const = default;
};

class Expression {
 public:
  int Load(int stream, Type type);
  int Literal(uint32_t bits, int type);
  int Float(float value);
  int Op(Micro op, int type, int a, int b = -1, int c = -1);
  const std::vector<Node>& nodes() const { return nodes_; }
  const Node& at(int node) const { return nodes_[static_cast<std::size_t>(node)]; }

 private:
  int Add(const Node& node);
  std::vector<Node> nodes_;  // operands first
  std::map<Node, int> known_;
};

// How a type is computed with; values of integers narrower than 32 bits are kept extended, pred is 0 or 1, bf16 is an f32.
int ArithmeticOf(DType dtype);
// The type as the machine stores it: its own, or for those that it does not have one of the same width, with which nothing but
// moving is right; none for elements of 16 bytes.
std::optional<Type> TypeOf(DType dtype);
// Whether the vector unit computes with it. With integers of 64 bits it does with two words, where it does.
bool Computes(DType dtype);
bool IsWide(DType dtype);

// Whether there are nodes for an elementwise instruction, or the reason why not.
std::optional<std::string> WhyNoNodes(const hlo::Instruction& instruction);
// The instruction's value, given those of its operands.
ValueNodes AddElementwise(const hlo::Instruction& instruction,
                          absl::Span<const ValueNodes> operands, Expression& expression);
// A value of this type made from one of that.
ValueNodes AddConvert(DType from, DType to, ValueNodes x, Expression& expression);

// The same where an operand or the result has 64 bits (wide.cc); none if there are no such nodes.
std::optional<ValueNodes> AddWide(const hlo::Instruction& instruction,
                                  absl::Span<const ValueNodes> operands, Expression& expression);
bool HasWideNodes(const hlo::Instruction& instruction);
ValueNodes AddWideConvert(DType from, DType to, ValueNodes x, Expression& expression);
// Integers to bf16, rounded once.
int IntegerToBf16(int type, int x, Expression& expression);

}  // namespace lazuli::npu
