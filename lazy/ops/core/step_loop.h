// Loops as one HLO while: for as long as a condition holds, and over the first dim of arrays, the
// steps of a recurrence. What a loop runs sees ops of its own builder only.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

#include "lowering/builder/builder.h"

namespace lazuli::lazy {

// The arrays, which begin as `begin`, after `next` made them from those before for as long as `more`
// of them, a pred[], held.
lowering::Ops RepeatWhile(
    lowering::Builder& builder, absl::Span<const lowering::Op> begin,
    absl::FunctionRef<lowering::Op(lowering::Builder&, const lowering::Ops&)> more,
    absl::FunctionRef<lowering::Ops(lowering::Builder&, const lowering::Ops&)> next);

// The arguments of a loop's body: the number of its step, s64[]; the arrays that the step before made;
// and arrays that stay the same in all steps. The body uses ops of the builder b alone.
struct LoopStep {
  lowering::Builder& b;
  lowering::Op number;
  absl::Span<const lowering::Op> carried, fixed;

  // x[number] of an array of all steps, and x with another element there.
  lowering::Op Of(lowering::Op x) const;
  lowering::Op With(lowering::Op x, lowering::Op element) const;
};

enum class StepOrder : uint8_t { kForward, kBackward };

// Runs `body` for each of `count` steps, from the first or from the last one. The body returns the carried
// arrays of the next step; the first step gets `carried`. Returns those of the last step.
std::vector<lowering::Op> ForEachStep(
    lowering::Builder& builder, int64_t count, StepOrder order,
    absl::Span<const lowering::Op> carried, absl::Span<const lowering::Op> fixed,
    absl::FunctionRef<std::vector<lowering::Op>(const LoopStep&)> body);

}  // namespace lazuli::lazy
