#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <typeinfo>
#include <unordered_set>
#include <utility>
#include <vector>

#include <cxxabi.h>

#include "cpp_api/nn/module_state.h"
#include "lazuli/autograd.h"
#include "lazuli/internal/fail.h"
#include "lazuli/nn.h"
#include "lazuli/serialize.h"

namespace lazuli::nn {
namespace {

using internal::ModuleState;
using lazuli::internal::Fail;
using Named = std::vector<std::pair<std::string, Tensor>>;
// Called with the dotted prefix of each state: "", "conv1.", ...
using Visitor = std::function<void(const std::string& prefix, ModuleState& state)>;

void Visit(ModuleState& state, const std::string& prefix, const Visitor& visitor,
           std::unordered_set<const ModuleState*>& seen) {
  if (!seen.insert(&state).second) return;
  visitor(prefix, state);
  for (const auto& [name, child] : state.children) {
    Visit(*child, prefix + name + ".", visitor, seen);
  }
}

// The state and those below it in the order of registration, each once.
void VisitAll(ModuleState& state, const Visitor& visitor) {
  std::unordered_set<const ModuleState*> seen;
  Visit(state, "", visitor, seen);
}

Named Collect(ModuleState& root, Named ModuleState::* list) {
  Named all;
  VisitAll(root, [&](const std::string& prefix, ModuleState& state) {
    for (const auto& [name, tensor] : state.*list) {
      const bool known = std::any_of(all.begin(), all.end(), [&t = tensor](const auto& other) {
        return other.second.is_same(t);
      });
      if (!known) all.emplace_back(prefix + name, tensor);
    }
  });
  return all;
}

void NameTensors(ModuleState& root) {
  for (auto& [name, tensor] : Collect(root, &ModuleState::parameters)) tensor.set_name(name);
  for (auto& [name, tensor] : Collect(root, &ModuleState::buffers)) tensor.set_name(name);
}

void CheckName(const ModuleState& state, const char* what, const std::string& name,
               SourceLocation loc) {
  if (name.empty()) {
    Fail(ErrorCode::kInvalidArgument, std::string(what) + ": the name is empty", loc);
  }
  if (name.find('.') != std::string::npos) {
    Fail(ErrorCode::kInvalidArgument,
         std::string(what) + ": '" + name + "' has a dot, which separates the names of modules",
         loc);
  }
  const auto taken = [&](const auto& list) {
    return std::any_of(list.begin(), list.end(), [&](const auto& e) { return e.first == name; });
  };
  if (taken(state.parameters) || taken(state.buffers) || taken(state.children)) {
    Fail(ErrorCode::kInvalidArgument,
         std::string(what) + ": the module has a '" + name + "' already", loc);
  }
}

}  // namespace

Module::Module() : state_(std::make_shared<ModuleState>()) {}

Module::Module(const Module& other)
    : state_(internal::CloneScope::Active() ? internal::CloneInScope(other.state_) : other.state_) {
}

void Module::register_module(const std::string& name, const Module& module, SourceLocation loc) {
  CheckName(*state_, "register_module", name, loc);
  VisitAll(*module.state_, [&](const std::string&, ModuleState& state) {
    if (&state == state_.get()) {
      Fail(ErrorCode::kInvalidArgument,
           "register_module: '" + name + "' contains the module it is registered in", loc);
    }
  });
  state_->children.emplace_back(name, module.state_);
  NameTensors(*state_);
  VisitAll(*state_, [](const std::string& prefix, ModuleState& state) {
    std::string path = prefix.substr(0, prefix.size() - std::min<std::size_t>(prefix.size(), 1));
    std::replace(path.begin(), path.end(), '.', '/');
    if (!path.empty()) state.path = NameScope::Path(path);
  });
}

void Module::register_modules(std::initializer_list<std::pair<const char*, Module>> modules,
                              SourceLocation loc) {
  for (const auto& [name, module] : modules) register_module(name, module, loc);
}

Parameter Module::register_parameter(const std::string& name, const Tensor& value,
                                     SourceLocation loc) {
  return register_parameter(name, value, /*requires_grad=*/true, loc);
}

Parameter Module::register_parameter(const std::string& name, const Tensor& value,
                                     bool requires_grad, SourceLocation loc) {
  const SiteScope site(loc);
  CheckName(*state_, "register_parameter", name, loc);
  Tensor tensor = value;
  if (!tensor.defined()) return Parameter(tensor);
  tensor.set_requires_grad(requires_grad, loc);
  state_->parameters.emplace_back(name, tensor);
  tensor.set_name(name);
  return Parameter(tensor);
}

Parameter Module::register_buffer(const std::string& name, const Tensor& value,
                                  SourceLocation loc) {
  CheckName(*state_, "register_buffer", name, loc);
  Tensor tensor = value;
  if (!tensor.defined()) return Parameter(tensor);
  state_->buffers.emplace_back(name, tensor);
  tensor.set_name(name);
  return Parameter(tensor);
}

bool Module::replace(const std::string& name, const Tensor& value) {
  for (auto* list : {&state_->parameters, &state_->buffers}) {
    for (auto& [known, tensor] : *list) {
      if (known != name) continue;
      tensor = value;
      tensor.set_name(name);
      return true;
    }
  }
  return false;
}

bool Module::unregister(const std::string& name) {
  const auto erase = [&](auto& list) {
    return std::erase_if(list, [&](const auto& entry) { return entry.first == name; }) > 0;
  };
  return erase(state_->parameters) || erase(state_->buffers) || erase(state_->children);
}

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> tensors;
  for (auto& [name, tensor] : named_parameters()) tensors.push_back(std::move(tensor));
  return tensors;
}

Named Module::named_parameters() const { return Collect(*state_, &ModuleState::parameters); }

Named Module::named_buffers() const { return Collect(*state_, &ModuleState::buffers); }

std::vector<Tensor> Module::buffers() const {
  std::vector<Tensor> tensors;
  for (auto& [name, tensor] : named_buffers()) tensors.push_back(std::move(tensor));
  return tensors;
}

std::int64_t Module::num_parameters() const {
  std::int64_t n = 0;
  for (const Tensor& p : parameters()) n += p.numel();
  return n;
}

StateDict Module::state_dict() const {
  StateDict dict;
  for (const Named& list : {named_parameters(), named_buffers()})
    dict.tensors.insert(list.begin(), list.end());
  return dict;
}

namespace {

Named ParametersAndBuffers(const Module& module) {
  Named all = module.named_parameters();
  const Named buffers = module.named_buffers();
  all.insert(all.end(), buffers.begin(), buffers.end());
  return all;
}

}  // namespace

LoadReport Module::load_state_dict(const StateDict& dict, LoadOptions options, SourceLocation loc) {
  return load_tensors(dict, ParametersAndBuffers(*this), "Module", options, loc);
}

void save(const Module& module, const std::string& path, SourceLocation loc) {
  save_safetensors(module.state_dict(), path, loc);
}

LoadReport load(Module& module, const std::string& path, LoadOptions options, SourceLocation loc) {
  return load_tensors(load_safetensors(path, Device(), loc), ParametersAndBuffers(module), path,
                      options, loc);
}

void Module::train(bool on) {
  VisitAll(*state_, [on](const std::string&, ModuleState& state) { state.training = on; });
}

bool Module::is_training() const { return state_->training; }

namespace {

// Lets the tensor have these elements; its gradient becomes as they are.
void Become(Tensor& tensor, const Tensor& elements) {
  const Tensor gradient = tensor.grad();
  tensor.set_data(elements);
  if (gradient.defined()) tensor.set_grad(gradient.to(elements.device()).to(elements.dtype()));
}

}  // namespace

void Module::to(const Device& device, SourceLocation loc) {
  const SiteScope site(loc);
  const NoGrad no_grad;
  for (const Named& list : {named_parameters(), named_buffers()}) {
    for (auto [name, tensor] : list) Become(tensor, tensor.to(device));
  }
}

void Module::to(DType dtype, SourceLocation loc) {
  const SiteScope site(loc);
  const NoGrad no_grad;
  if (!zeros({}, dtype).is_floating_point()) {
    Fail(ErrorCode::kInvalidArgument,
         "to: modules take a dtype of floats, not " + std::string(to_string(dtype)), loc);
  }
  for (const Named& list : {named_parameters(), named_buffers()}) {
    for (auto [name, tensor] : list) {
      if (tensor.is_floating_point()) Become(tensor, tensor.to(dtype));
    }
  }
}

void Module::to(const Device& device, DType dtype, SourceLocation loc) {
  to(dtype, loc);
  to(device, loc);
}

NameScope Module::enter(std::string_view kind) const {
  return NameScope::OfModule(state_->path != 0 ? state_->path : NameScope::Path(kind));
}

std::string Module::kind_of(const std::type_info& type) {
  int status = 0;
  char* const demangled = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string name = demangled != nullptr ? demangled : type.name();
  std::free(demangled);
  name.resize(std::min(name.find('<'), name.size()));
  return name.substr(name.rfind(':') + 1);  // npos + 1 is 0
}

void Module::zero_grad(SourceLocation loc) {
  for (Tensor& p : parameters()) p.set_grad({}, loc);
}

}  // namespace lazuli::nn
