// Applies the algebraic rules of rules/ until none applies.
//
// Each instruction is looked at once, and again when something up to two steps away from it
// changed, which is as far as rules look; rules are found by opcode, so a pass over a module is
// linear in its size. Hits are counted per rule (rule.<name>), rules are turned off by name, and a
// rule that returns another shape than it was given is an error. Values stay the
// same bit for bit.
//
// It ends because every rule replaces a value by a lighter one (rules/weight.h), to which
// LAZULI_VERIFY_PASSES holds them in small computations. Should two rules undo each other all the
// same, it stops after 16 rewrites per instruction: the module is right, if not as simple as it
// might be, the counter pass.simplify.stopped tells, and the first time a line on standard
// error.
//
//   c = f32[] constant(1)
//   b = f32[4] broadcast(c), dimensions={}
//   m = f32[4] multiply(p, b)
//   ROOT n = f32[4] negate(m)          =>   ROOT n = f32[4] negate(p)
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"

#include "ir/support/flags.h"
#include "lowering/passes/pass.h"
#include "lowering/passes/rules/rules.h"

namespace lazuli::lowering {

class Simplify final : public Pass {
 public:
  // The rules must live as long as the pass.
  explicit Simplify(absl::Span<const Rule> rules = AllRules(),
                    std::string disabled = flags().disable_rules())
      : rules_(rules), disabled_(std::move(disabled)) {}
  std::string_view name() const override { return "simplify"; }
  absl::StatusOr<bool> Run(hlo::Module& module) override;

 private:
  absl::StatusOr<std::vector<bool>> EnabledRules() const;

  absl::Span<const Rule> rules_;
  std::string disabled_;  // names, separated by commas
};

}  // namespace lazuli::lowering
