#include "lowering/passes/scheduled.h"

#include <algorithm>
#include <ranges>

#include "ir/evaluator/dynamic_sizes.h"

namespace lazuli::lowering {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

bool IsAllArrays(const Shape& shape) {
  if (!shape.IsTuple()) return shape.IsArray();
  return std::all_of(shape.tuple().begin(), shape.tuple().end(), IsAllArrays);
}

// A function of the host is called wherever it stands; other effects are the evaluator's.
bool HasEffectOfEvaluator(const Instruction& i) {
  return i.opcode() != Opcode::kCustomCall && i.HasSideEffect();
}

bool TakesAndGivesArrays(const Computation& computation) {
  const auto& parameters = computation.parameters();
  return IsAllArrays(computation.root()->shape()) &&
         std::all_of(parameters.begin(), parameters.end(),
                     [](const Instruction* p) { return IsAllArrays(p->shape()); });
}

}  // namespace

ScheduledComputations::ScheduledComputations(const hlo::Module& module)
    : calls_run_(!hlo::HasDynamicSizes(module)) {
  const std::vector<Computation*> callees_first = module.PostOrder();
  // Asked callees first, and remembered: HasSideEffect() of a call would look through all that it
  // reaches.
  for (const Computation* c : callees_first) {
    is_evaluated_[c] =
        std::any_of(c->instructions().begin(), c->instructions().end(), [&](const auto& i) {
          if (i->called().empty()) return HasEffectOfEvaluator(*i);
          return std::any_of(i->called().begin(), i->called().end(),
                             [&](const Computation* callee) { return is_evaluated_.at(callee); });
        });
  }
  // How deep a computation lies at most is known once all its callers are.
  std::unordered_map<const Computation*, int> deepest{{module.entry(), 0}};
  for (const Computation* c : std::views::reverse(callees_first)) {
    const auto at = deepest.find(c);
    if (at == deepest.end() || at->second > kMaxDepth) continue;
    depth_[c] = at->second;
    for (const auto& i : c->instructions()) {
      if (!MayRun(*i)) continue;
      for (const Computation* callee : i->called()) {
        int& depth = deepest[callee];
        depth = std::max(depth, depth_.at(c) + 1);
      }
    }
  }
  for (Computation* c : callees_first) {
    if (depth_.contains(c)) order_.push_back(c);
  }
}

bool ScheduledComputations::MayRun(const Instruction& i) const {
  return (i.opcode() == Opcode::kWhile || i.opcode() == Opcode::kConditional ||
          (i.opcode() == Opcode::kCall && calls_run_)) &&
         std::all_of(i.called().begin(), i.called().end(), [&](const Computation* c) {
           return !is_evaluated_.at(c) && TakesAndGivesArrays(*c);
         });
}

bool ScheduledComputations::Runs(const Instruction& i) const {
  return MayRun(i) && std::all_of(i.called().begin(), i.called().end(),
                                  [&](const Computation* c) { return depth_.contains(c); });
}

absl::StatusOr<bool> RewriteScheduled(
    hlo::Module& module, absl::FunctionRef<absl::StatusOr<bool>(Computation*)> rewrite) {
  bool changed = false;
  const ScheduledComputations scheduled(module);
  for (Computation* computation : scheduled.callees_first()) {
    LAZULI_ASSIGN_OR_RETURN(const bool here, rewrite(computation));
    changed |= here;
  }
  return changed;
}

}  // namespace lazuli::lowering
