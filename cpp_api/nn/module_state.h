// What the copies of a module share.
#pragma once

#include <cstdint>
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
  // "block1/conv1" as the scope of what is recorded inside, from the outermost module that it is
  // registered in; 0 if in none.
  std::uint32_t path = 0;
};

// The copy of `state` that the innermost CloneScope of this thread makes: one for each state.
std::shared_ptr<ModuleState> CloneInScope(const std::shared_ptr<ModuleState>& state);

}  // namespace lazuli::nn::internal
