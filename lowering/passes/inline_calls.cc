#include "lowering/passes/inline_calls.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "lowering/passes/rewriter.h"

namespace lazuli::lowering {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Calls that call calls twice grow exponentially.
constexpr int64_t kMaxInstructions = 1'000'000;

// Bodies that may move into their callers. Asked callees first, and remembered: a call's own
// HasSideEffect() looks through all that it reaches.
class Inlinable {
 public:
  bool Body(const Computation* body) {
    const auto [found, is_new] = bodies_.try_emplace(body, false);
    if (!is_new) return found->second;
    const auto& all = body->instructions();
    const bool can =
        std::all_of(all.begin(), all.end(), [this](const auto& i) { return MayMove(i.get()); });
    return bodies_[body] = can;
  }

 private:
  bool MayMove(const Instruction* i) {
    if (!i->control_predecessors().empty()) return false;
    if (i->opcode() == Opcode::kCall) return Body(i->to_apply());
    return !i->HasSideEffect();
  }
  std::unordered_map<const Computation*, bool> bodies_;
};

Instruction* InlineBody(const Instruction* call, Rewriter& r) {
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
  return copies[call->to_apply()->root()];
}

bool InlineIn(Computation* computation, Inlinable& inlinable, int64_t* budget) {
  std::vector<Instruction*> calls;
  for (const auto& i : computation->instructions()) {
    if (i->opcode() != Opcode::kCall || !i->control_predecessors().empty()) continue;
    if (inlinable.Body(i->to_apply())) calls.push_back(i.get());
  }
  if (calls.empty()) return false;
  Rewriter r(computation);
  for (Instruction* call : calls) {
    if (r.IsErased(call)) continue;
    *budget -= call->to_apply()->instruction_count();
    if (*budget < 0) break;
    r.Replace(call, InlineBody(call, r));
  }
  return r.changed();
}

}  // namespace

absl::StatusOr<bool> InlineCalls::Run(hlo::Module& module) {
  int64_t budget = kMaxInstructions;
  Inlinable inlinable;
  bool changed = false;
  for (Computation* computation : module.PostOrder())
    changed |= InlineIn(computation, inlinable, &budget);
  return changed;
}

}  // namespace lazuli::lowering
