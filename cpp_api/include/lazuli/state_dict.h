// State by name: what modules and optimisers are saved as and loaded from.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lazuli/ops.h"
#include "lazuli/tensor.h"

namespace lazuli {

struct StateDict {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;  // of optimisers: options and steps
};

struct LoadOptions {
  bool strict = true;  // a name that only one side has is an error
};
// Names that only one side had: missing from the state, and unexpected in it.
struct LoadReport {
  std::vector<std::string> missing, unexpected;
};

// Copies the state's tensors into tensors of the same names, in place and without history; from any
// device. `what` names the owner in errors: "Module". Throws Error(kInvalidArgument), with nothing
// copied, for a shape or dtype that differs and, if strict, for a name that only one side has.
LAZULI_API LoadReport load_tensors(const StateDict& state,
                                   const std::vector<std::pair<std::string, Tensor>>& into,
                                   const std::string& what, LoadOptions options = {}, LAZULI_LOC);

}  // namespace lazuli
