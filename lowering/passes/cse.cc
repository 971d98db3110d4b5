#include "lowering/passes/cse.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "absl/container/inlined_vector.h"

#include "ir/support/hash.h"
#include "lowering/passes/rewriter.h"
#include "lowering/passes/structural_hash.h"

namespace lazuli::lowering {
namespace {

using hlo::Computation;
using hlo::Instruction;

class Merger {
 public:
  Merger(Computation* computation, const ComputationClasses& classes)
      : rewriter_(computation), classes_(classes) {}

  bool Run() {
    for (Instruction* i : rewriter_.computation()->PostOrder()) {
      if (i->opcode() == hlo::Opcode::kParameter || !i->control_predecessors().empty()) continue;
      if (rewriter_.IsErased(i) || i->HasSideEffect() || hlo::Traits(i->opcode()).barrier) continue;
      if (i->users().empty() && !i->IsRoot())
        continue;  // dead: merging it would change nothing that matters
      auto& candidates = seen_[Hash(*i)];
      const auto equal = std::find_if(candidates.begin(), candidates.end(),
                                      [&](const Instruction* other) { return Same(*i, *other); });
      if (equal != candidates.end()) {
        rewriter_.Replace(i, *equal);
      } else {
        candidates.push_back(i);
      }
    }
    return rewriter_.changed();
  }

 private:
  uint64_t Hash(const Instruction& i) const {
    uint64_t hash = Mix(static_cast<uint64_t>(i.opcode()), HashOf(i.shape()));
    if (hlo::Traits(i.opcode()).commutative) {
      const auto a = static_cast<uint64_t>(i.operand(0)->id()),
                 b = static_cast<uint64_t>(i.operand(1)->id());
      hash = Mix(Mix(hash, std::min(a, b)), std::max(a, b));
    } else {
      for (const Instruction* operand : i.operands())
        hash = Mix(hash, static_cast<uint64_t>(operand->id()));
    }
    return i.attrs().index() == 0 ? hash : Mix(hash, HashOf(i.attrs()));
  }

  bool Same(const Instruction& a, const Instruction& b) const {
    if (a.opcode() != b.opcode() || a.shape() != b.shape() || !(a.attrs() == b.attrs()))
      return false;
    if (a.sharding() != b.sharding() || a.extra_attrs() != b.extra_attrs() ||
        a.called().size() != b.called().size())
      return false;
    for (std::size_t k = 0; k < a.called().size(); ++k) {
      if (classes_.of(a.called()[k]) != classes_.of(b.called()[k])) return false;
    }
    if (a.operands() == b.operands()) return true;
    return hlo::Traits(a.opcode()).commutative && a.operand(0) == b.operand(1) &&
           a.operand(1) == b.operand(0);
  }

  Rewriter rewriter_;
  const ComputationClasses& classes_;
  std::unordered_map<uint64_t, absl::InlinedVector<Instruction*, 1>> seen_;
};

}  // namespace

absl::StatusOr<bool> Cse::Run(hlo::Module& module) {
  const ComputationClasses classes(module);
  bool changed = false;
  for (const auto& computation : module.computations()) {
    if (computation->instruction_count() > 1) changed |= Merger(computation.get(), classes).Run();
  }
  return changed;
}

}  // namespace lazuli::lowering
