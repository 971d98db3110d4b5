// BodyPlan: what a fused body computes at one point of its iteration space, and where in memory the
// values lie that it reads there.
//
// A kernel is a loop nest over the elements of its result. The plan says what the innermost body of
// that nest does, as a list of nodes in an order in which they can be computed. Instructions that
// only move elements make no node. Broadcasts, transposes, slices, reverses and reshapes that move
// dimensions of size 1 change the index at which their operand is wanted, and that change is affine in
// the loop variables. So a value of the plan is a pair: an instruction, and the affine index (Point)
// at which it is wanted. The same instruction wanted at two indices is two values. Whatever is read
// from memory lies at an offset that is affine in the loop variables, too.
//
//   t = f32[8,4] transpose(p: f32[4,8]), dimensions={1,0}
//   s = f32[8,2] slice(t), slice={[0:8], [1:4:2]}
//   ROOT n = f32[8,2] negate(s)
//
//   sizes (8, 2), variables (u, v)
//   n at (u, v)  =>  s at (u, v)  =>  t at (u, 1 + 2v)  =>  p at (1 + 2v, u)
//   nodes: load p[8 + u + 16v], negate
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

// One value that the body computes.
struct PlanNode {
  enum class Kind : uint8_t { kLoad, kGather, kConstant, kIota, kGiven, kOp };
  Kind kind = Kind::kOp;
  // kGiven: the emitter of the kernel computes it. It is a select-and-scatter, or an element of the
  // state of a loop.
  const hlo::Instruction* instruction = nullptr;
  // kLoad and elements of a state: the offset in elements. kGather: the offset without what the
  // indices add to it. kIota: the value.
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
  struct InstructionPoint {
    const hlo::Instruction* instruction;
    Point point;
  };
  int32_t Find(const InstructionPoint& key) const;
  bool Operand(InstructionPoint key, PlanNode& node, std::vector<InstructionPoint>& pending) const;
  bool ExpandGather(const InstructionPoint& key, PlanNode& node,
                    std::vector<InstructionPoint>& pending) const;
  bool Expand(const InstructionPoint& key, std::vector<InstructionPoint>& pending);

  BodyPlan& plan_;
  std::vector<std::pair<InstructionPoint, int32_t>> done_;
};

// The point of `shape`'s elements whose index in dimension d is iteration variable variables[d].
Point IdentityPoint(absl::Span<const int64_t> variables, int64_t rank);
// Element offset of a point in an array with this layout.
Affine Offset(const Shape& shape, const Point& point, int64_t rank);

// What a component of the index of a gather or dynamic-slice adds to the offset: `stride` times the
// component, clamped to [0, last].
struct IndexComponent {
  int64_t last, stride;
};
std::vector<IndexComponent> IndexComponents(const hlo::Instruction& gather);
// Whether 32 bits hold every offset in the gathered array, or every value of the iota.
bool HasNarrowOffsets(const hlo::Instruction& gather);
bool HasNarrowIota(const hlo::Instruction& iota);

// Makes the loop nest shallower. Drops the variables of [first, last) that have size 1, and merges
// two neighbours into one where every form steps through them as through one: its coefficient of the
// outer is that of the inner times the inner's size. The forms are those of the nodes and those
// given. Returns how many variables of the range are left, which is at least one.
int64_t MergeVariables(BodyPlan& plan, std::vector<Affine*>& forms, int64_t first, int64_t last);

}  // namespace lazuli::cpu
