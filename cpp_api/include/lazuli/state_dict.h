// State by name: what modules and optimisers are saved as and loaded from.
#pragma once

#include <cstddef>
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

  // The tensors by name: for (const auto& [name, tensor] : net.state_dict()).
  auto begin() const { return tensors.begin(); }
  auto end() const { return tensors.end(); }
  std::size_t size() const { return tensors.size(); }
  bool contains(const std::string& name) const { return tensors.contains(name); }

  // Puts a state into this one: what is "weight" there is "model.weight" here for the name "model".
  // So one file holds several states.
  LAZULI_API void insert(const std::string& name, const StateDict& part);
  // The state that was inserted under the name. Throws Error(kNotFound) if there is none.
  LAZULI_API StateDict part(const std::string& name, LAZULI_LOC) const;
};

struct LoadOptions {
  bool strict = true;  // a name that only one side has is an error
};
// Names that only one side had: missing from the state, and unexpected in it.
struct LoadReport {
  std::vector<std::string> missing, unexpected;
};

// Copies the state's tensors into tensors of the same names, in place and without history; from any
// device and dtype. `what` names the owner in errors: "Module". Throws Error(kInvalidArgument), with
// nothing copied, for dims that differ and, if strict, for a name that only one side has.
LAZULI_API LoadReport load_tensors(const StateDict& state,
                                   const std::vector<std::pair<std::string, Tensor>>& into,
                                   const std::string& what, LoadOptions options = {}, LAZULI_LOC);

}  // namespace lazuli
