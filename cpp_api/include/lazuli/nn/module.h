// Module: what owns parameters and other modules; Parameter; clone(); Layer.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

#include "lazuli/execution.h"
#include "lazuli/ops.h"
#include "lazuli/state_dict.h"
#include "lazuli/tensor.h"

namespace lazuli::nn {

namespace internal {
struct ModuleState;

// While alive, copying a module or a Parameter on this thread copies what it owns.
class LAZULI_API CloneScope {
 public:
  explicit CloneScope(SourceLocation loc);
  ~CloneScope();
  CloneScope(const CloneScope&) = delete;
  CloneScope& operator=(const CloneScope&) = delete;
  static bool Active();

 private:
  friend struct Cloner;
  struct Map;
  std::unique_ptr<Map> map_;
  CloneScope* outer_;
  SiteScope site_;
};
LAZULI_API Tensor CloneInScope(const Tensor& tensor);
}  // namespace internal

// A tensor that a module owns, for members of modules: used as any tensor, and copied by clone(),
// which a Tensor member is not.
class Parameter : public Tensor {
 public:
  Parameter() = default;
  explicit Parameter(const Tensor& tensor) : Tensor(tensor) {}
  Parameter(const Parameter& other)
      : Tensor(internal::CloneScope::Active() ? internal::CloneInScope(other) : Tensor(other)) {}
  Parameter(Parameter&&) noexcept = default;
  Parameter& operator=(const Parameter&) = default;
  Parameter& operator=(Parameter&&) noexcept = default;
  // The member is another tensor, with which forward() computes; what the module has registered stays
  // (Module::replace).
  Parameter& operator=(const Tensor& tensor) {
    static_cast<Tensor&>(*this) = tensor;
    return *this;
  }
};

class LAZULI_API Module {
 public:
  Module();
  Module(const Module& other);
  Module(Module&&) noexcept = default;
  Module& operator=(const Module&) = default;
  Module& operator=(Module&&) noexcept = default;
  ~Module() = default;

  // --- registration, in constructors. Names are not empty, have no dot and are unique in the
  // module.
  void register_module(const std::string& name, const Module& module, LAZULI_LOC);
  void register_modules(std::initializer_list<std::pair<const char*, Module>> modules, LAZULI_LOC);
  // Makes `value`, of a float dtype, require a gradient. An undefined one is an absent parameter
  // (no bias): returned as it is.
  Parameter register_parameter(const std::string& name, const Tensor& value, LAZULI_LOC);
  // The same, of any dtype where it is not to be trained.
  Parameter register_parameter(const std::string& name, const Tensor& value, bool requires_grad,
                               LAZULI_LOC);
  // State that is no parameter, such as running means: moved by to() and copied by clone(), but not
  // trained.
  Parameter register_buffer(const std::string& name, const Tensor& value, LAZULI_LOC);

  // Puts another tensor in the place of the parameter or buffer of this name, in the same order;
  // whether there is one.
  bool replace(const std::string& name, const Tensor& value);
  // Forgets what is registered under the name, which is free then; whether there was something.
  bool unregister(const std::string& name);

  // --- what the module and the modules in it own, in the order of registration, each tensor once.
  std::vector<Tensor> parameters() const;
  // Names have dots: "conv1.weight". The same names stand in dumps, by the outermost module that
  // registered the parameter.
  std::vector<std::pair<std::string, Tensor>> named_parameters() const;
  std::vector<std::pair<std::string, Tensor>> named_buffers() const;
  std::vector<Tensor> buffers() const;
  std::int64_t num_parameters() const;  // elements

  // Parameters and buffers by name: what nn::save() writes.
  StateDict state_dict() const;
  // Copies the tensors of `state` to the parameters and buffers of these names, in place. Those of
  // another dtype are converted. Throws Error(kInvalidArgument), with nothing copied, for dims that
  // differ and, if strict, for a name that only one side has.
  LoadReport load_state_dict(const StateDict& state, LoadOptions options = {}, LAZULI_LOC);

  // Training mode, on at first, of this and all modules in it: Dropout does nothing in evaluation.
  void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const;

  // Moves parameters and buffers. They stay the same tensors, so optimisers keep them; gradients
  // move along.
  void to(const Device& device, LAZULI_LOC);
  // The same with a float dtype for those of floats; other buffers stay as they are.
  void to(DType dtype, LAZULI_LOC);
  void to(const Device& device, DType dtype, LAZULI_LOC);
  // Drops the gradients of all parameters.
  void zero_grad(LAZULI_LOC);

  // While the result lives, the thread records inside of this module. What is registered nowhere is
  // called `kind`. Layer's call does it.
  NameScope enter(std::string_view kind) const;
  // "Net" of the type "ns::Net".
  static std::string kind_of(const std::type_info& type);

 private:
  std::shared_ptr<internal::ModuleState> state_;
};

// A copy of the module and all modules in it, with parameters and buffers of its own. It covers
// what is held by value: modules, Parameters, and containers of these.
template <std::derived_from<Module> M>
M clone(const M& module, SourceLocation loc = SourceLocation::current()) {
  internal::CloneScope scope(loc);
  return M(module);
}

// Writes and reads state_dict() as a safetensors file, which other tools read, too (serialize.h).
LAZULI_API void save(const Module& module, const std::string& path, LAZULI_LOC);
LAZULI_API LoadReport load(Module& module, const std::string& path, LoadOptions options = {},
                           LAZULI_LOC);

// What has a forward(x): gives it the call operator.
template <class Derived>
class Layer : public Module {
 public:
  Tensor operator()(const Tensor& x, SourceLocation loc = SourceLocation::current()) const {
    static const std::string kind = Module::kind_of(typeid(Derived));
    const NameScope scope = enter(kind);
    return static_cast<const Derived&>(*this).forward(x, loc);
  }
};

}  // namespace lazuli::nn
