// What parts of results depend on: the questions that cutting and reversing programs ask.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "absl/types/span.h"

#include "lowering/transforms/parts.h"

namespace lazuli::lowering {

// Which parts of the result depend on parts of the parameters, one parameter after the other.
Mask DependentResults(const hlo::Computation& computation, const Mask& parameters);
// The same of the state of a loop after any number of steps: a superset of `begin`.
Mask DependentState(const hlo::Computation& body, const Mask& begin);

// What a step of a loop makes of each part of its state.
struct StateStep {
  bool is_invariant = false;
  std::optional<int64_t> increment{};  // of an integer that grows by a constant
};
std::vector<StateStep> StepsOfState(const hlo::Computation& body);

// The values of instructions that follow from constants, and of those that somebody knows.
class Constants {
 public:
  void Learn(Op value, const Literal& literal) { known_[value.instruction()] = literal; }
  // Small arrays only.
  std::optional<Literal> ValueOf(Op value) const { return ValueOf(value.instruction(), 0); }

 private:
  std::optional<Literal> ValueOf(const hlo::Instruction* i, int depth) const;
  std::unordered_map<const hlo::Instruction*, Literal> known_;
};

// The steps that a loop runs, found by running the part of its state that decides; nullopt where that
// depends on parts that are not known when it begins. A loop of more than a million steps is unknown, too.
std::optional<int64_t> StepCount(hlo::Module& module, const hlo::Computation& condition,
                                 const hlo::Computation& body,
                                 absl::Span<const std::optional<Literal>> begin);

}  // namespace lazuli::lowering
