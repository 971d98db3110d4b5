// ScheduledComputations: the computations that a device runs instruction by instruction - the entry
// and, level by level, what its loops, branches and calls call.
//
// What else a module holds is part of some instruction: reducers, comparators, bodies of fusions,
// and whatever a loop calls that only the evaluator can run. Passes that prepare instructions for a
// device (fusion, layouts, choice of libraries) work on scheduled computations, and code is emitted
// for the same ones, so a loop's body is compiled exactly as an entry is.
//
//   ENTRY main { ... w = while(t), condition=c, body=b ... r = reduce(x, zero), to_apply=add }
//   => c, b, main, but not add
#pragma once

#include <unordered_map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

#include "ir/hlo/module.h"

namespace lazuli::lowering {

class ScheduledComputations {
 public:
  // Levels of loops, branches and calls below the entry. A thunk of a loop runs those of its body,
  // so each level takes stack when it runs; what is nested deeper goes to the evaluator with the
  // instruction that calls it.
  static constexpr int kMaxDepth = 24;

  explicit ScheduledComputations(const hlo::Module& module);
  // Callees before callers; the entry is the last. Linear in the module, whatever its nesting.
  const std::vector<hlo::Computation*>& callees_first() const { return order_; }
  // Whether the instruction is a loop, a branch or a call whose computations are all scheduled.
  bool Runs(const hlo::Instruction& instruction) const;

 private:
  bool MayRun(const hlo::Instruction& instruction) const;

  bool calls_run_;  // not of a module whose sizes only the evaluator knows
  std::unordered_map<const hlo::Computation*, bool> is_evaluated_;  // it has such effects
  std::unordered_map<const hlo::Computation*, int> depth_;          // of those that are scheduled
  std::vector<hlo::Computation*> order_;
};

// Calls `rewrite` for each scheduled computation, callees first; whether one changed.
absl::StatusOr<bool> RewriteScheduled(
    hlo::Module& module, absl::FunctionRef<absl::StatusOr<bool>(hlo::Computation*)> rewrite);

}  // namespace lazuli::lowering
