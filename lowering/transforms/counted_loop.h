// Loops over the steps 0, 1, ..., count - 1 or back.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

#include "lowering/transforms/parts.h"

namespace lazuli::lowering {

// What a step makes of the state, given its number, s64[], and the state and values that stay the same.
using LoopBody = absl::FunctionRef<std::vector<Op>(
    Builder& b, Op number, absl::Span<const Op> state, absl::Span<const Op> fixed)>;
// The state after all steps.
std::vector<Op> AddCountedLoop(Builder& b, int64_t count, bool is_backward,
                               absl::Span<const Op> state, absl::Span<const Op> fixed,
                               LoopBody body);

// begin + number * increment, of an integer.
Op CounterAt(Builder& b, Op begin, Op number, int64_t increment);

// Arrays of an element for each step.
Op EmptyStack(Builder& b, const Shape& element, int64_t count);
Op ElementOf(Builder& b, Op stack, Op number);
Op WithElement(Builder& b, Op stack, Op number, Op element);

}  // namespace lazuli::lowering
