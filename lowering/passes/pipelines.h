// Which passes run in which order, and why: the tables of contents of optimisation.
#pragma once

#include "lowering/passes/pass.h"

namespace lazuli::lowering {

// The target-independent passes: fewer instructions that say the same, bit for bit. Backends run it
// first. The pipeline's options are theirs.
void AddSimplificationPipeline(PassPipeline& pipeline);

}  // namespace lazuli::lowering
