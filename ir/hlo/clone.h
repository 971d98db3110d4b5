// Copies of computations in another module.
#pragma once

#include <unordered_map>

#include "absl/types/span.h"

#include "ir/hlo/module.h"

namespace lazuli::hlo {

// Copies by original.
using Clones = std::unordered_map<const Computation*, Computation*>;

// Copies `sources` and all that they call into the module.
Clones AddClones(absl::Span<const Computation* const> sources, Module& module);
// A copy of the program's entry computation, and of all that it calls, in another module. Instructions
// keep their lines and lose their call stacks, whose tables are the program's.
Computation* AddCopy(const Module& program, Module& module);
// A copy of `source` (attributes, metadata) with these operands, which calls the copies of what that calls.
Instruction* AddClone(const Instruction& source, absl::Span<Instruction* const> operands,
                      const Clones& callees, Computation& computation);

}  // namespace lazuli::hlo
