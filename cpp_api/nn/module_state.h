// What the copies of a module share.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lazuli/nn.h"

namespace lazuli::nn::internal {

struct ModuleState {
  bool training = true;
  std::vector<std::pair<std::string, Tensor>> parameters, buffers;
  std::vector<std::pair<std::string, std::shared_ptr<ModuleState>>> children;
};

// The copy of `state` that the innermost CloneScope of this thread makes: one for each state.
std::shared_ptr<ModuleState> CloneInScope(const std::shared_ptr<ModuleState>& state);

}  // namespace lazuli::nn::internal
