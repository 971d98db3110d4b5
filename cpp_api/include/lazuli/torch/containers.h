// Lists and dictionaries of modules and of parameters, in LibTorch's words.
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
    Register(std::to_string(size()), module, loc);
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
  // Throws Error(kInvalidArgument) if the module is not a T.
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

// What dictionaries share: their items, in the order in which they came.
template <class T>
class ItemsByName {
 public:
  using Items = std::vector<std::pair<std::string, T>>;
  bool contains(const std::string& name) const { return Find(name) != nullptr; }
  const Items& items() const { return items_; }
  std::vector<std::string> keys() const {
    std::vector<std::string> names;
    for (const auto& [name, value] : items_) names.push_back(name);
    return names;
  }
  std::vector<T> values() const {
    std::vector<T> all;
    for (const auto& [name, value] : items_) all.push_back(value);
    return all;
  }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  std::size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }

 protected:
  // Throws Error(kNotFound).
  const T& At(const char* kind, const std::string& name) const {
    if (const T* const found = Find(name)) return *found;
    throw Error(ErrorCode::kNotFound, std::string(kind) + ": there is no \"" + name + "\"");
  }
  Items items_;

 private:
  const T* Find(const std::string& name) const {
    for (const auto& [key, value] : items_) {
      if (key == name) return &value;
    }
    return nullptr;
  }
};

// Modules by name. It has no forward().
class ModuleDictImpl : public Module, public ItemsByName<HeldModule> {
 public:
  ModuleDictImpl() = default;
  explicit ModuleDictImpl(const Items& modules) { update(modules); }
  void pretty_print(std::ostream& os) const override { os << "torch::nn::ModuleDict"; }
  void insert(const std::string& name, const HeldModule& module, LAZULI_LOC) {
    Register(name, module, loc);
    items_.emplace_back(name, module);
  }
  void update(const Items& modules, LAZULI_LOC) {
    for (const auto& [name, module] : modules) insert(name, module, loc);
  }
  // Throws Error(kNotFound).
  const HeldModule& operator[](const std::string& name) const { return At("ModuleDict", name); }
  // The module, which it forgets.
  HeldModule pop(const std::string& name, LAZULI_LOC) {
    HeldModule module = (*this)[name];
    unregister_module(name, loc);
    std::erase_if(items_, [&](const auto& item) { return item.first == name; });
    return module;
  }
  void clear(LAZULI_LOC) {
    for (const std::string& name : keys()) pop(name, loc);
  }
  // Throws Error(kInvalidArgument) if the module is not a T.
  template <class T>
  T& at(const std::string& name) const {
    if (T* const module = (*this)[name].template as<T>()) return *module;
    throw Error(ErrorCode::kInvalidArgument, "ModuleDict: \"" + name + "\" is of another type");
  }
};
class ModuleDict : public ModuleHolder<ModuleDictImpl> {
 public:
  using ModuleHolder::ModuleHolder;
  ModuleDict() = default;
  explicit ModuleDict(const ModuleDictImpl::Items& modules)
      : ModuleHolder(std::make_shared<ModuleDictImpl>(modules)) {}
  const HeldModule& operator[](const std::string& name) const { return (**this)[name]; }
};

// "Parameter containing: [f32[2,3]]" for each.
inline void PrintParameters(std::ostream& os, const char* kind,
                            const std::vector<std::pair<std::string, Tensor>>& parameters) {
  os << "torch::nn::" << kind << "(\n";
  for (const auto& [name, tensor] : parameters)
    os << '(' << name << "): Parameter containing: [" << tensor.dtype() << " of size "
       << tensor.sizes() << "]\n";
  os << ')';
}

// Parameters by position, which is their name.
class ParameterListImpl : public Module {
 public:
  ParameterListImpl() = default;
  ParameterListImpl(std::initializer_list<Tensor> parameters) { extend(parameters); }
  void append(const Tensor& parameter, LAZULI_LOC) {
    register_parameter(std::to_string(size()), parameter, parameter.requires_grad(), loc);
    parameters_.push_back(parameter);
  }
  template <class Container>
  void extend(const Container& parameters, LAZULI_LOC) {
    for (const Tensor& parameter : parameters) append(parameter, loc);
  }
  // Throws Error(kOutOfRange) for a position that there is not.
  const Tensor& operator[](std::size_t i) const {
    if (i >= size())
      throw Error(ErrorCode::kOutOfRange, "ParameterList: there is no parameter " +
                                              std::to_string(i) + ", the list has " +
                                              std::to_string(size()));
    return parameters_[i];
  }
  Tensor& at(std::size_t i) { return const_cast<Tensor&>((*this)[i]); }
  auto begin() const { return parameters_.begin(); }
  auto end() const { return parameters_.end(); }
  std::size_t size() const { return parameters_.size(); }
  bool is_empty() const { return parameters_.empty(); }
  void pretty_print(std::ostream& os) const override {
    PrintParameters(os, "ParameterList", lazuli::nn::Module::named_parameters());
  }

 private:
  std::vector<Tensor> parameters_;
};
class ParameterList : public ModuleHolder<ParameterListImpl> {
 public:
  using ModuleHolder::ModuleHolder;
  ParameterList() = default;
  template <std::convertible_to<Tensor>... T>
    requires(sizeof...(T) > 0)
  explicit ParameterList(const T&... parameters) {
    ((*this)->append(parameters), ...);
  }
  const Tensor& operator[](std::size_t i) const { return (**this)[i]; }
};

// Parameters by name.
class ParameterDictImpl : public Module, public ItemsByName<Tensor> {
 public:
  ParameterDictImpl() = default;
  explicit ParameterDictImpl(const Items& parameters) { update(parameters); }
  Tensor& insert(const std::string& name, const Tensor& parameter, LAZULI_LOC) {
    register_parameter(name, parameter, parameter.requires_grad(), loc);
    return items_.emplace_back(name, parameter).second;
  }
  template <class Container>  // of pairs
  void update(const Container& parameters, LAZULI_LOC) {
    for (const auto& [name, parameter] : parameters) insert(name, parameter, loc);
  }
  // Throws Error(kNotFound).
  Tensor& operator[](const std::string& name) {
    return const_cast<Tensor&>(std::as_const(*this)[name]);
  }
  const Tensor& operator[](const std::string& name) const { return At("ParameterDict", name); }
  // The parameter, which it forgets.
  Tensor pop(const std::string& name) {
    Tensor parameter = (*this)[name];
    unregister(name);
    std::erase_if(items_, [&](const auto& item) { return item.first == name; });
    return parameter;
  }
  void clear() {
    for (const std::string& name : keys()) pop(name);
  }
  void pretty_print(std::ostream& os) const override {
    PrintParameters(os, "ParameterDict", items_);
  }
};
class ParameterDict : public ModuleHolder<ParameterDictImpl> {
 public:
  using ModuleHolder::ModuleHolder;
  ParameterDict() = default;
  Tensor& operator[](const std::string& name) const { return (**this)[name]; }
};

}  // namespace lazuli::torch_names::nn
