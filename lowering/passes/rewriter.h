// Rewriter: the only way in which passes edit a computation.
//
// Keeps operand and user lists, names and source metadata right and records whether anything
// changed. What Replace leaves without users is erased, and so is what only it used. The memory of
// what is dead is freed when the rewriter goes, if it changed anything; until then pointers to
// erased instructions stay good (IsErased), as a pass may walk a list it took before.
#pragma once

#include <unordered_set>

#include "absl/types/span.h"

#include "ir/hlo/module.h"

namespace lazuli::lowering {

class Rewriter {
 public:
  explicit Rewriter(hlo::Computation* computation);
  ~Rewriter();  // erases
  Rewriter(const Rewriter&) = delete;
  Rewriter& operator=(const Rewriter&) = delete;

  hlo::Computation* computation() const { return computation_; }
  bool changed() const { return changed_; }
  bool IsErased(const hlo::Instruction* i) const { return erased_.contains(i); }

  // Instructions made from now on get this one's metadata: the one that is being rewritten.
  void set_origin(const hlo::Instruction* origin) { origin_ = origin; }

  // New instructions, of a shape that the caller vouches for. Adding alone changes nothing; unused
  // ones are erased at the end.
  hlo::Instruction* Add(hlo::Opcode opcode, const Shape& shape,
                        absl::Span<hlo::Instruction* const> operands,
                        hlo::Attrs attrs = hlo::NoAttrs{},
                        absl::Span<hlo::Computation* const> called = {});
  // The same opcode, attributes and callees over other operands; `shape` where it differs.
  hlo::Instruction* AddClone(const hlo::Instruction& source,
                             absl::Span<hlo::Instruction* const> operands);
  hlo::Instruction* AddConstant(Literal value);
  hlo::Instruction* Scalar(DType dtype, double value);
  hlo::Instruction* Full(const Shape& shape, double value);     // a broadcast scalar
  hlo::Instruction* Convert(hlo::Instruction* x, DType dtype);  // x if it has the type
  hlo::Instruction* Reshape(hlo::Instruction* x,
                            absl::Span<const int64_t> dims);  // x if it has the dims
  hlo::Instruction* Broadcast(hlo::Instruction* x, const Shape& shape,
                              absl::Span<const int64_t> dimensions);
  hlo::Instruction* Transpose(hlo::Instruction* x, absl::Span<const int64_t> permutation);

  // All uses of `old`, the root's included, become uses of `with`. Shapes must be equal.
  void Replace(hlo::Instruction* old, hlo::Instruction* with);
  void ReplaceOperand(hlo::Instruction* user, int64_t index, hlo::Instruction* with);
  // Other attributes for an instruction that keeps its shape.
  void SetAttrs(hlo::Instruction* i, hlo::Attrs attrs);
  // Removes `dead` and whatever only it used, if nothing needs it: no users, no side effects, not
  // the root or a parameter.
  void Erase(hlo::Instruction* dead);

 private:
  bool CanErase(const hlo::Instruction* i) const;

  hlo::Computation* computation_;
  const hlo::Instruction* origin_ = nullptr;
  bool changed_ = false;
  std::unordered_set<const hlo::Instruction*> erased_;
  std::unordered_set<const hlo::Instruction*> pinned_;  // control predecessors of others
  bool added_ = false;
};

}  // namespace lazuli::lowering
