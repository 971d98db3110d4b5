// GuardUpdates: a run in which a check fails changes nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

#include "ir/hlo/module.h"
#include "lowering/builder/builder.h"
#include "lowering/builder/lowering_context.h"

namespace lazuli::lowering {

// Outputs that update a parameter (`aliases`) give its elements as they were where a check fails,
// so whoever gave the memory up has them afterwards.
//
// An output that is made by writing to the parameter - scatters and dynamic update slices - writes
// nothing then, so the memory of a large parameter can still be written in place. Every other
// output is selected from the new and the old elements.
//
// Returns for each output whether it is computed from a write that is not made then: its elements are
// not what was recorded.
std::vector<uint8_t> GuardUpdates(absl::Span<const RuntimeCheck> checks,
                                  absl::Span<const hlo::Alias> aliases,
                                  absl::Span<const Op> parameters, Builder& builder,
                                  std::vector<Op>& outputs);

}  // namespace lazuli::lowering
