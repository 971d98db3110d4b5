#include "lowering/passes/dce.h"

#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace lazuli::lowering {
namespace {

using hlo::Computation;

// Callers go before what they call.
bool RemoveUnreachedComputations(hlo::Module& module) {
  const std::vector<Computation*> order = module.PostOrder();
  if (order.size() == module.computations().size()) return false;
  const std::unordered_set<const Computation*> reached(order.begin(), order.end());
  std::vector<Computation*> dead, pending;
  for (const auto& c : module.computations()) {
    if (!reached.contains(c.get())) dead.push_back(c.get());
  }
  std::unordered_map<const Computation*, int64_t> callers;
  for (Computation* c : dead) {
    for (const auto& i : c->instructions()) {
      for (const Computation* callee : i->called()) ++callers[callee];
    }
  }
  for (Computation* c : dead) {
    if (callers[c] == 0) pending.push_back(c);
  }
  while (!pending.empty()) {
    Computation* const c = pending.back();
    pending.pop_back();
    for (const auto& i : c->instructions()) {
      for (Computation* callee : i->called()) {
        if (--callers[callee] == 0 && !reached.contains(callee)) pending.push_back(callee);
      }
    }
    module.RemoveComputation(c);
  }
  return true;
}

}  // namespace

absl::StatusOr<bool> Dce::Run(hlo::Module& module) {
  bool changed = false;
  for (Computation* computation : module.PostOrder()) changed |= computation->RemoveDead() > 0;
  return RemoveUnreachedComputations(module) || changed;
}

}  // namespace lazuli::lowering
