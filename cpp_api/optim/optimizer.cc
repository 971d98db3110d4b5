#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "cpp_api/optim/options.h"
#include "lazuli/autograd.h"
#include "lazuli/execution.h"
#include "lazuli/internal/fail.h"
#include "lazuli/internal/text.h"
#include "lazuli/optim.h"
#include "lazuli/serialize.h"

namespace lazuli::optim {
namespace {

using lazuli::internal::Fail;
using lazuli::internal::NumberText;

std::string Key(std::size_t parameter, const char* name) {
  return std::to_string(parameter) + "." + name;
}

// All digits of a number, and back.
std::string Text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}
template <class T>
std::optional<T> Parse(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "fc1.weight.momentum", if the parameter has a name.
void NameState(Tensor& state, const Tensor& parameter, const char* name) {
  if (!parameter.name().empty()) state.set_name(parameter.name() + "." + name);
}

}  // namespace

Optimizer::Optimizer(std::vector<Tensor> parameters, const char* name,
                     const std::vector<const char*>& states, SourceLocation loc)
    : name_(name), parameters_(std::move(parameters)), steps_(parameters_.size()) {
  for (const char* state : states) states_.push_back({state, TensorList(parameters_.size())});
  if (parameters_.empty()) {
    Fail(ErrorCode::kInvalidArgument,
         std::string(name) + ": there are no parameters; does the model register its modules?",
         loc);
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const std::string which = "parameter " + std::to_string(i);
    if (!parameters_[i].defined()) {
      Fail(ErrorCode::kInvalidArgument, std::string(name) + ": " + which + " is undefined", loc);
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (!parameters_[i].is_same(parameters_[j])) continue;
      Fail(ErrorCode::kInvalidArgument,
           std::string(name) + ": " + which + " is also parameter " + std::to_string(j) +
               "; it would be moved twice a step",
           loc);
    }
  }
}

void Optimizer::zero_grad(SourceLocation loc) {
  for (Tensor& p : parameters_) p.set_grad({}, loc);
}

void Optimizer::step(SourceLocation loc) {
  const SiteScope site(loc);
  // Whatever happens, gradients are not held longer than by the parameters.
  struct Clear {
    std::vector<Group>& groups;
    ~Clear() {
      for (Group& group : groups) group.Clear();
    }
  } const clear{groups_};
  update_.RunFirst(name_, loc);
  MakeGroups();
  ForeachTransaction together;
  for (Group& group : groups_) {
    if (group.empty()) continue;
    Update(group);
    NameStates(group);
  }
  together.commit();
  for (const Group& group : groups_) Keep(group);
  if (!groups_.empty() && !groups_[0].empty()) update_.Set();
}

void Optimizer::MakeGroups() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& p = parameters_[i];
    Tensor grad = p.grad();
    if (!grad.defined()) continue;
    Group& group = GroupFor(i);
    group.indices.push_back(i);
    group.parameters.push_back(p);
    group.gradients.push_back(std::move(grad));
    for (std::size_t s = 0; s < states_.size(); ++s)
      group.states[s].push_back(states_[s].tensors[i]);
  }
}

Optimizer::Group& Optimizer::GroupFor(std::size_t i) {
  const Tensor& p = parameters_[i];
  const std::int64_t steps = GroupsBySteps() ? steps_[i] + 1 : 0;
  const auto fits = [&](const Group& g) {
    if (g.steps != steps || g.parameters[0].dtype() != p.dtype()) return false;
    for (std::size_t s = 0; s < states_.size(); ++s) {
      if (g.states[s][0].defined() != states_[s].tensors[i].defined()) return false;
    }
    return g.parameters[0].device() == p.device();
  };
  // Those of earlier steps are there, empty, with the memory of their lists.
  for (Group& group : groups_) {
    if (group.empty()) group.steps = steps;
    if (group.empty() || fits(group)) return group;
  }
  groups_.push_back({.indices = {},
                     .steps = steps,
                     .parameters = {},
                     .gradients = {},
                     .states = std::vector<TensorList>(states_.size())});
  return groups_.back();
}

void Optimizer::Group::Clear() {
  indices.clear();
  parameters.clear();
  gradients.clear();
  for (TensorList& state : states) state.clear();
}

void Optimizer::Fill(Group& group, std::size_t state, double value) {
  if (group.states[state][0].defined()) return;
  for (std::size_t i = 0; i < group.indices.size(); ++i) {
    const Tensor& p = group.parameters[i];
    group.states[state][i] =
        value == 0 ? zeros_like(p) : full(p.sizes(), value, p.dtype(), p.device());
  }
}

void Optimizer::NameStates(Group& group) const {
  for (std::size_t s = 0; s < states_.size(); ++s) {
    for (std::size_t k = 0; k < group.indices.size(); ++k) {
      Tensor& made = group.states[s][k];
      if (made.defined() && !states_[s].tensors[group.indices[k]].defined())
        NameState(made, group.parameters[k], states_[s].name);
    }
  }
}

void Optimizer::Keep(const Group& group) noexcept {
  for (std::size_t k = 0; k < group.indices.size(); ++k) {
    const std::size_t i = group.indices[k];
    for (std::size_t s = 0; s < states_.size(); ++s) states_[s].tensors[i] = group.states[s][k];
    ++steps_[i];
  }
}

// --- state

StateDict Optimizer::state_dict() const {
  StateDict dict;
  dict.metadata["optimizer"] = name_;
  dict.metadata["parameters"] = std::to_string(parameters_.size());
  // Options are given to be read and written; reading leaves *this as it is.
  for (const Option& option : const_cast<Optimizer*>(this)->Options()) {
    const auto* number = std::get_if<double*>(&option.value);
    dict.metadata[option.name] = number != nullptr                ? Text(**number)
                                 : *std::get<bool*>(option.value) ? "true"
                                                                  : "false";
  }
  if (initial_lr_) dict.metadata["initial_lr"] = Text(*initial_lr_);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    dict.metadata[Key(i, "steps")] = std::to_string(steps_[i]);
    for (const State& state : states_) {
      if (state.tensors[i].defined()) dict.tensors[Key(i, state.name)] = state.tensors[i];
    }
  }
  return dict;
}

void Optimizer::load_state_dict(const StateDict& dict, SourceLocation loc) {
  const SiteScope site(loc);
  const NoGrad no_grad;
  const auto fail = [&](const std::string& what) {
    Fail(ErrorCode::kInvalidArgument, std::string(name_) + ": " + what, loc);
  };
  const auto text = [&](const std::string& key) -> const std::string& {
    const auto found = dict.metadata.find(key);
    if (found == dict.metadata.end()) fail("the state has no '" + key + "'");
    return found->second;
  };
  if (text("optimizer") != name_) fail("the state is of " + text("optimizer"));
  if (text("parameters") != std::to_string(parameters_.size())) {
    fail("the state is of " + text("parameters") + " parameters, there are " +
         std::to_string(parameters_.size()));
  }
  // All is read and checked before anything is changed.
  const std::vector<Option> options = Options();
  std::vector<double> numbers;
  for (const Option& option : options) {
    const std::string& value = text(option.name);
    const bool is_number = std::holds_alternative<double*>(option.value);
    const std::optional<double> number = is_number          ? Parse<double>(value)
                                         : value == "true"  ? 1.0
                                         : value == "false" ? std::optional(0.0)
                                                            : std::nullopt;
    if (!number) fail(std::string("the state's ") + option.name + " is '" + value + "'");
    numbers.push_back(*number);
  }
  std::optional<double> initial_lr;
  if (dict.metadata.contains("initial_lr")) {
    initial_lr = Parse<double>(text("initial_lr"));
    if (!initial_lr) fail("the state's initial_lr is '" + text("initial_lr") + "'");
  }
  std::vector<std::int64_t> steps;
  std::vector<std::vector<Tensor>> made;
  std::vector<std::pair<std::string, Tensor>> into;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const std::optional<std::int64_t> count = Parse<std::int64_t>(text(Key(i, "steps")));
    if (!count || *count < 0) fail("the state's " + Key(i, "steps") + " is no count");
    steps.push_back(*count);
  }
  for (const State& state : states_) {
    made.emplace_back(parameters_.size());
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!dict.tensors.contains(Key(i, state.name))) continue;
      made.back()[i] = zeros_like(parameters_[i]);
      NameState(made.back()[i], parameters_[i], state.name);
      into.emplace_back(Key(i, state.name), made.back()[i]);
    }
  }
  load_tensors(dict, into, name_, {}, loc);
  const auto set = [&](const std::vector<double>& values) {
    for (std::size_t i = 0; i < options.size(); ++i) {
      if (const auto* number = std::get_if<double*>(&options[i].value))
        **number = values[i];
      else
        *std::get<bool*>(options[i].value) = values[i] != 0;
    }
  };
  std::vector<double> old;
  for (const Option& option : options) {
    const auto* number = std::get_if<double*>(&option.value);
    old.push_back(number != nullptr ? **number : *std::get<bool*>(option.value) ? 1 : 0);
  }
  set(numbers);
  try {
    CheckOptions(loc);
  } catch (...) {
    set(old);
    throw;
  }
  initial_lr_ = initial_lr;
  steps_ = std::move(steps);
  for (std::size_t s = 0; s < states_.size(); ++s) states_[s].tensors = std::move(made[s]);
}

void save(const Optimizer& optimizer, const std::string& path, SourceLocation loc) {
  save_safetensors(optimizer.state_dict(), path, loc);
}

void load(Optimizer& optimizer, const std::string& path, SourceLocation loc) {
  optimizer.load_state_dict(load_safetensors(path, Device(), loc), loc);
}

// --- checks of options

void CheckAtLeastZero(const char* optimizer, const char* option, double value, SourceLocation loc) {
  if (value >= 0) return;  // false for NaN
  Fail(ErrorCode::kInvalidArgument,
       std::string(optimizer) + ": " + option + " is " + NumberText(value) +
           ", it must be at least 0",
       loc);
}

void CheckFraction(const char* optimizer, const char* option, double value, SourceLocation loc) {
  if (value >= 0 && value < 1) return;
  Fail(ErrorCode::kInvalidArgument,
       std::string(optimizer) + ": " + option + " is " + NumberText(value) +
           ", it must be at least 0 and below 1",
       loc);
}

}  // namespace lazuli::optim
