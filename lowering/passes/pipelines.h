// Which passes run in which order, and why: the tables of contents of optimisation.
#pragma once

#include "lowering/passes/inline_calls.h"
#include "lowering/passes/pass.h"

namespace lazuli::lowering {

// The target-independent passes: fewer instructions that say the same, bit for bit. Backends run it
// first. The pipeline's options are theirs. Calls that stay are left to the backend.
void AddSimplificationPipeline(PassPipeline& pipeline, const CallFilter& stays = nullptr);

}  // namespace lazuli::lowering
