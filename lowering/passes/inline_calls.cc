#include "lowering/passes/inline_calls.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lowering/passes/rewriter.h"

namespace lazuli::lowering {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Instructions of a body that several calls share and that is written out for each of them. Larger
// ones stay calls, or levels that call the next one twice would double with each of them.
constexpr int64_t kMaxShared = 1000;
// Instructions that one run of the pass adds.
constexpr int64_t kMaxAdded = 1'000'000;

bool IsCall(const Instruction& i) {
  return i.opcode() == Opcode::kCall || i.opcode() == Opcode::kFusion;
}

// Bodies that may move into their callers. Asked callees first, and remembered: a call's own
// HasSideEffect() looks through all that it reaches.
class Inlinable {
 public:
  Inlinable(absl::Span<Computation* const> computations, const CallFilter& stays) : stays_(stays) {
    for (const Computation* c : computations) {
      for (const auto& i : c->instructions()) {
        for (const Computation* callee : i->called()) ++uses_[callee];
      }
    }
  }

  bool Into(const Instruction& call) {
    if (!IsCall(call) || !call.control_predecessors().empty()) return false;
    if (stays_ && stays_(call)) return false;
    const Computation* const body = call.to_apply();
    return MayMove(body) && (uses_[body] == 1 || body->instruction_count() <= kMaxShared);
  }

 private:
  bool MayMove(const Computation* body) {
    const auto [found, is_new] = bodies_.try_emplace(body, false);
    if (!is_new) return found->second;
    const auto& all = body->instructions();
    const bool can =
        std::all_of(all.begin(), all.end(), [this](const auto& i) { return MayMove(*i); });
    return bodies_[body] = can;
  }
  bool MayMove(const Instruction& i) {
    if (!i.control_predecessors().empty()) return false;
    return IsCall(i) ? MayMove(i.to_apply()) : !i.HasSideEffect();
  }

  const CallFilter& stays_;
  std::unordered_map<const Computation*, int64_t> uses_;
  std::unordered_map<const Computation*, bool> bodies_;
};

bool InlineIn(Computation* computation, Inlinable& inlinable, int64_t* budget) {
  std::unordered_set<const Instruction*> ordered;  // before others, whose order names them
  for (const auto& i : computation->instructions())
    ordered.insert(i->control_predecessors().begin(), i->control_predecessors().end());
  std::vector<Instruction*> calls;
  for (const auto& i : computation->instructions()) {
    if (inlinable.Into(*i) && !ordered.contains(i.get())) calls.push_back(i.get());
  }
  if (calls.empty()) return false;
  Rewriter r(computation);
  for (Instruction* call : calls) {
    if (r.IsErased(call)) continue;
    *budget -= call->to_apply()->instruction_count();
    if (*budget < 0) break;
    InlineCall(r, call);
  }
  return r.changed();
}

}  // namespace

Instruction* InlineCall(Rewriter& r, Instruction* call) {
  std::unordered_map<const Instruction*, Instruction*> copies;
  std::vector<Instruction*> operands;
  r.set_origin(call);
  for (const Instruction* i : call->to_apply()->PostOrder()) {
    if (i->opcode() == Opcode::kParameter) {
      copies[i] = call->operand(i->parameter_number());
      continue;
    }
    operands.clear();
    for (const Instruction* operand : i->operands()) operands.push_back(copies[operand]);
    copies[i] = r.AddClone(*i, operands);
  }
  Instruction* const root = copies[call->to_apply()->root()];
  r.Replace(call, root);
  return root;
}

absl::StatusOr<bool> InlineCalls::Run(hlo::Module& module) {
  int64_t budget = kMaxAdded;
  const std::vector<Computation*> callees_first = module.PostOrder();
  Inlinable inlinable(callees_first, stays_);
  bool changed = false;
  for (Computation* computation : callees_first)
    changed |= InlineIn(computation, inlinable, &budget);
  return changed;
}

}  // namespace lazuli::lowering
