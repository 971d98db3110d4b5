// The order in which the computations of a module are written, as text or as a proto.
#pragma once

#include <vector>

#include "ir/hlo/module.h"

namespace lazuli::hlo {

// Callees before callers, as readers need them, also of computations that nothing reaches; the
// entry is the last.
std::vector<Computation*> WrittenOrder(const Module& module);

}  // namespace lazuli::hlo
