// Lists and dictionaries of modules, in LibTorch's words.
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <ostream>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "lazuli/torch/nn.h"

namespace lazuli::torch_names::nn {

// Modules by position, which is their name. It has no forward().
class ModuleListImpl : public Module {
 public:
  ModuleListImpl() = default;
  ModuleListImpl(std::initializer_list<HeldModule> modules) {
    for (const HeldModule& module : modules) push_back(module);
  }
  void pretty_print(std::ostream& os) const override { os << "torch::nn::ModuleList"; }
  void push_back(HeldModule module, LAZULI_LOC) {
    lazuli::nn::Module::register_module(std::to_string(size()), *module, loc);
    Keep(std::to_string(size()), module);
    modules_.push_back(std::move(module));
  }
  template <class Container>
  void extend(const Container& modules, LAZULI_LOC) {
    for (const auto& module : modules) push_back(module, loc);
  }
  // Throws Error(kOutOfRange) for a position that there is not.
  const HeldModule& operator[](std::size_t i) const {
    if (i >= size())
      throw Error(ErrorCode::kOutOfRange, "ModuleList: there is no module " + std::to_string(i) +
                                              ", the list has " + std::to_string(size()));
    return modules_[i];
  }
  const HeldModule& ptr(std::size_t i) const { return (*this)[i]; }
  // Throws Error(kInvalidArgument) if the module is no T.
  template <class T>
  T& at(std::size_t i) const {
    if (T* const module = (*this)[i].template as<T>()) return *module;
    throw Error(ErrorCode::kInvalidArgument,
                "ModuleList: module " + std::to_string(i) + " is of another type");
  }
  auto begin() const { return modules_.begin(); }
  auto end() const { return modules_.end(); }
  std::size_t size() const { return modules_.size(); }
  bool is_empty() const { return modules_.empty(); }

 private:
  std::vector<HeldModule> modules_;
};
class ModuleList : public ModuleHolder<ModuleListImpl> {
 public:
  using ModuleHolder::ModuleHolder;
  ModuleList() = default;
  template <class... M>
    requires(sizeof...(M) > 0 && (std::convertible_to<M, HeldModule> && ...) &&
             !(std::derived_from<M, ModuleList> && ...))
  explicit ModuleList(const M&... modules) {
    ((*this)->push_back(HeldModule(modules)), ...);
  }
  const HeldModule& operator[](std::size_t i) const { return (**this)[i]; }
};

// Modules by name, in the order in which they came. It has no forward().
class ModuleDictImpl : public Module {
 public:
  using Items = std::vector<std::pair<std::string, HeldModule>>;
  ModuleDictImpl() = default;
  explicit ModuleDictImpl(const Items& modules) { update(modules); }
  void pretty_print(std::ostream& os) const override { os << "torch::nn::ModuleDict"; }
  void insert(const std::string& name, const HeldModule& module, LAZULI_LOC) {
    lazuli::nn::Module::register_module(name, *module, loc);
    Keep(name, module);
    modules_.emplace_back(name, module);
  }
  void update(const Items& modules, LAZULI_LOC) {
    for (const auto& [name, module] : modules) insert(name, module, loc);
  }
  bool contains(const std::string& name) const { return Find(name) != nullptr; }
  // Throws Error(kNotFound).
  const HeldModule& operator[](const std::string& name) const {
    if (const HeldModule* const found = Find(name)) return *found;
    throw Error(ErrorCode::kNotFound, "ModuleDict: there is no \"" + name + "\"");
  }
  // Throws Error(kInvalidArgument) if the module is no T.
  template <class T>
  T& at(const std::string& name) const {
    if (T* const module = (*this)[name].template as<T>()) return *module;
    throw Error(ErrorCode::kInvalidArgument, "ModuleDict: \"" + name + "\" is of another type");
  }
  const Items& items() const { return modules_; }
  std::vector<std::string> keys() const {
    std::vector<std::string> names;
    for (const auto& [name, module] : modules_) names.push_back(name);
    return names;
  }
  std::vector<HeldModule> values() const {
    std::vector<HeldModule> all;
    for (const auto& [name, module] : modules_) all.push_back(module);
    return all;
  }
  auto begin() const { return modules_.begin(); }
  auto end() const { return modules_.end(); }
  std::size_t size() const { return modules_.size(); }
  bool empty() const { return modules_.empty(); }

 private:
  const HeldModule* Find(const std::string& name) const {
    for (const auto& [key, module] : modules_) {
      if (key == name) return &module;
    }
    return nullptr;
  }
  Items modules_;
};
class ModuleDict : public ModuleHolder<ModuleDictImpl> {
 public:
  using ModuleHolder::ModuleHolder;
  ModuleDict() = default;
  explicit ModuleDict(const ModuleDictImpl::Items& modules)
      : ModuleHolder(std::make_shared<ModuleDictImpl>(modules)) {}
  const HeldModule& operator[](const std::string& name) const { return (**this)[name]; }
};

}  // namespace lazuli::torch_names::nn
