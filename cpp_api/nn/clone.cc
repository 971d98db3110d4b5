#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cpp_api/nn/module_state.h"
#include "lazuli/autograd.h"
#include "lazuli/nn.h"

namespace lazuli::nn::internal {
namespace {

thread_local CloneScope* innermost = nullptr;

}  // namespace

// Of each original its copy, and of each copy itself: a container may copy a copy while it grows.
struct CloneScope::Map {
  std::unordered_map<const ModuleState*, std::shared_ptr<ModuleState>> states;
  std::vector<std::pair<Tensor, Tensor>> tensors;
};

// What may look into a scope.
struct Cloner {
  static CloneScope::Map& Map() { return *innermost->map_; }
};

CloneScope::CloneScope(SourceLocation loc)
    : map_(std::make_unique<Map>()), outer_(std::exchange(innermost, this)), site_(loc) {}

CloneScope::~CloneScope() { innermost = outer_; }

bool CloneScope::Active() { return innermost != nullptr; }

Tensor CloneInScope(const Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  auto& tensors = Cloner::Map().tensors;
  for (const auto& [original, copy] : tensors) {
    if (original.is_same(tensor) || copy.is_same(tensor)) return copy;
  }
  Tensor copy = tensor.detach().clone();
  copy.set_requires_grad(tensor.requires_grad());
  copy.set_name(tensor.name());
  tensors.emplace_back(tensor, copy);
  return copy;
}

std::shared_ptr<ModuleState> CloneInScope(const std::shared_ptr<ModuleState>& state) {
  auto& states = Cloner::Map().states;
  if (const auto found = states.find(state.get()); found != states.end()) return found->second;
  auto copy = std::make_shared<ModuleState>();
  states.emplace(state.get(), copy);
  states.emplace(copy.get(), copy);
  copy->training = state->training;
  for (const auto& [name, t] : state->parameters) {
    copy->parameters.emplace_back(name, CloneInScope(t));
  }
  for (const auto& [name, t] : state->buffers) copy->buffers.emplace_back(name, CloneInScope(t));
  for (const auto& [name, m] : state->children) copy->children.emplace_back(name, CloneInScope(m));
  return copy;
}

}  // namespace lazuli::nn::internal
