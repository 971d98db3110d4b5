#include "lowering/passes/drop_layouts.h"

#include <algorithm>
#include <ranges>
#include <vector>

#include "ir/types/permutation.h"
#include "lowering/passes/rewriter.h"

namespace lazuli::lowering {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

bool HasLayout(const Shape& shape) {
  return shape.has_layout() || std::any_of(shape.tuple().begin(), shape.tuple().end(), HasLayout);
}

Dims MajorToMinor(const Shape& shape) {
  const Dims minor_to_major = shape.minor_to_major();
  return {minor_to_major.rbegin(), minor_to_major.rend()};
}

// The bitcast between arrays whose dimensions are in the order of memory.
Instruction* Spelled(Instruction* bitcast, Rewriter& r) {
  Instruction* x = bitcast->operand(0);
  const Dims from = MajorToMinor(x->shape()), to = MajorToMinor(bitcast->shape());
  Instruction* in_memory = x->shape().has_layout() ? r.Transpose(x, from) : x;
  Dims dims;
  for (const int64_t d : to) dims.push_back(bitcast->shape().dim(d));
  Instruction* result = r.Add(Opcode::kBitcast, Shape(bitcast->shape().dtype(), dims), {in_memory});
  return bitcast->shape().has_layout() ? r.Transpose(result, Inverse(to)) : result;
}

bool SpellBitcasts(Computation* computation) {
  const std::vector<Instruction*> order = computation->PostOrder();
  Rewriter r(computation);
  for (Instruction* bitcast : order | std::views::reverse) {  // users see their operand's layout
    if (bitcast->opcode() != Opcode::kBitcast) continue;
    if (!bitcast->shape().has_layout() && !bitcast->operand(0)->shape().has_layout()) continue;
    r.set_origin(bitcast);
    Instruction* spelled = Spelled(bitcast, r);
    *bitcast->mutable_shape() = bitcast->shape().WithDefaultLayout();
    r.Replace(bitcast, spelled);
  }
  return r.changed();
}

}  // namespace

absl::StatusOr<bool> DropLayouts::Run(hlo::Module& module) {
  bool changed = false;
  for (const auto& computation : module.computations()) {
    changed |= SpellBitcasts(computation.get());
    for (const auto& i : computation->instructions()) {
      if (!HasLayout(i->shape())) continue;
      *i->mutable_shape() = i->shape().WithDefaultLayout();
      changed = true;
    }
  }
  return changed;
}

}  // namespace lazuli::lowering
