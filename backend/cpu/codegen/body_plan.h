// BodyPlan: what a fused body computes at one point of its iteration space, and where in memory its
// leaves lie there.
//
// Broadcasts, transposes, slices, reverses and reshapes that only move dimensions of size 1 become
// affine changes of the index, so each value of the plan is an instruction at an affine index, and
// the plan's leaves are loads from addresses that are affine in the iteration variables.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

#include "ir/hlo/module.h"

namespace lazuli::cpu {

// constant + sum of coefficient[d] * iteration variable d.
struct Affine {
  int64_t constant = 0;
  Dims coefficients;
  bool operator==(const Affine&) const = default;
};
// One expression for each dimension of an array.
using Point = std::vector<Affine>;

struct PlanNode {
  enum class Kind : uint8_t { kLoad, kGather, kConstant, kIota, kGiven, kOp };
  Kind kind = Kind::kOp;
  // kGiven: what the emitter of the kernel computes itself - a select-and-scatter, an element of a
  // loop's state.
  const hlo::Instruction* instruction = nullptr;
  // kLoad and elements of a state: element offset; kGather: without what the indices add; kIota:
  // value
  Affine form;
  std::vector<int32_t> operands;  // kOp, kGather (the components of an index): nodes before this

  // What the node reads of the kernel's memory; null if nothing.
  const hlo::Instruction* parameter() const {
    if (kind == Kind::kGather) return instruction->operand(0);
    return kind == Kind::kLoad ? instruction : nullptr;
  }
  bool LoadsAt(const Affine& offset) const { return kind == Kind::kLoad && form == offset; }
};

struct BodyPlan {
  Dims sizes;                   // of the iteration space
  std::vector<PlanNode> nodes;  // operands before users
};

// Whether the plan sees through it: a change of index.
bool IsIndexChange(const hlo::Instruction& instruction);
// A reshape that only adds or removes dimensions of size 1.
bool IsDegenerateReshape(const Shape& from, const Shape& to);

// Adds to `plan` the value of `instruction` at `point`, and returns its node. Values already there
// are shared.
class Planner {
 public:
  explicit Planner(BodyPlan& plan) : plan_(plan) {}
  int32_t Add(const hlo::Instruction* instruction, const Point& point);

 private:
  struct Key {
    const hlo::Instruction* instruction;
    Point point;
  };
  int32_t Find(const Key& key) const;
  bool Operand(Key key, PlanNode& node, std::vector<Key>& pending) const;
  bool Expand(const Key& key, std::vector<Key>& pending);

  BodyPlan& plan_;
  std::vector<std::pair<Key, int32_t>> done_;
};

// The point of `shape`'s elements whose index in dimension d is iteration variable variables[d].
Point IdentityPoint(absl::Span<const int64_t> variables, int64_t rank);
// Element offset of a point in an array with this layout.
Affine Offset(const Shape& shape, const Point& point, int64_t rank);

// Merges neighbouring iteration variables in [first, last) where every form allows it and drops
// those of size 1: forms are the nodes' and those given. Returns how many variables of the range
// are left (at least one, of size 1 if need be).
int64_t MergeVariables(BodyPlan& plan, std::vector<Affine*>& forms, int64_t first, int64_t last);

}  // namespace lazuli::cpu
