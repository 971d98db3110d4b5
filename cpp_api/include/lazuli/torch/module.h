// What modules are in LibTorch's words: holders, modules in modules by name, and what layers have.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "lazuli/nn.h"
#include "lazuli/torch/ordered_dict.h"
#include "lazuli/torch/serialize.h"
#include "lazuli/torch/tensor.h"

namespace lazuli::torch_names {

// Names of paddings, modes and activations.
inline constexpr const char *kSame = "same", *kValid = "valid", *kZeros = "zeros",
                            *kBorder = "border", *kReflection = "reflection", *kMax = "max";
inline constexpr auto kFanIn = lazuli::nn::init::Fan::kIn, kFanOut = lazuli::nn::init::Fan::kOut;
inline constexpr auto kSigmoid = lazuli::nn::init::Nonlinearity::kSigmoid,
                      kTanh = lazuli::nn::init::Nonlinearity::kTanh,
                      kReLU = lazuli::nn::init::Nonlinearity::kReLU,
                      kLeakyReLU = lazuli::nn::init::Nonlinearity::kLeakyReLU,
                      kSELU = lazuli::nn::init::Nonlinearity::kSELU;
struct GELUName {};
inline constexpr GELUName kGELU{};
inline constexpr auto kNone = lazuli::nn::Reduction::kNone, kMean = lazuli::nn::Reduction::kMean,
                      kSum = lazuli::nn::Reduction::kSum;
struct BatchMeanName {};  // the sum over the size of the first dim, which is the divergence
inline constexpr BatchMeanName kBatchMean{};

namespace nn {

// By name: what is declared below hides them, in programs that say `using namespace torch::nn`, too.
namespace init {
using namespace lazuli::nn::init;
using lazuli::nn::init::kaiming_normal_;
using lazuli::nn::init::kaiming_uniform_;
inline void kaiming_normal_(Tensor t, double slope, Fan fan = Fan::kIn,
                            Nonlinearity nonlinearity = Nonlinearity::kLeakyReLU, LAZULI_LOC) {
  kaiming_normal_(std::move(t), {slope, fan, nonlinearity}, {}, loc);
}
inline void kaiming_uniform_(Tensor t, double slope, Fan fan = Fan::kIn,
                             Nonlinearity nonlinearity = Nonlinearity::kLeakyReLU, LAZULI_LOC) {
  kaiming_uniform_(std::move(t), {slope, fan, nonlinearity}, {}, loc);
}
}  // namespace init
namespace utils = lazuli::nn::utils;
namespace functional {  // functional.h has more
using namespace lazuli::nn::functional;
}
using lazuli::nn::BatchNorm;
using lazuli::nn::clone;
using lazuli::nn::Layer;
using lazuli::nn::OptionalSize2;
using lazuli::nn::Padding;
using lazuli::nn::Parameter;
using lazuli::nn::Reduction;
using lazuli::nn::Sides;
using lazuli::nn::Size2;

// A shared module: copies are the same one, but for those that clone() makes. Empty if made of
// nullptr. Those of layers make them with the line of the program.
template <class T>
class LayerHolder {
 public:
  using ContainedType = T;
  LayerHolder()
    requires std::default_initializable<T>
      : module_(std::make_shared<T>()) {}
  LayerHolder(std::nullptr_t) {}                                          // NOLINT: implicit
  LayerHolder(std::shared_ptr<T> module) : module_(std::move(module)) {}  // NOLINT: implicit
  LayerHolder(const LayerHolder& other)
      : module_(lazuli::nn::internal::CloneScope::Active() && other.module_ != nullptr
                    ? std::make_shared<T>(*other.module_)
                    : other.module_) {}
  LayerHolder(LayerHolder&&) noexcept = default;
  LayerHolder& operator=(const LayerHolder&) = default;
  LayerHolder& operator=(LayerHolder&&) noexcept = default;
  ~LayerHolder() = default;
  T* operator->() const { return get(); }
  T& operator*() const { return *get(); }
  // Throws Error(kFailedPrecondition) if the holder is empty.
  T* get() const {
    if (module_ == nullptr)
      throw Error(ErrorCode::kFailedPrecondition, "a module holder that is empty is used");
    return module_.get();
  }
  const std::shared_ptr<T>& ptr() const { return module_; }
  bool is_empty() const { return module_ == nullptr; }
  explicit operator bool() const { return !is_empty(); }
  template <class... A>
  auto operator()(A&&... arguments) const {
    return get()->forward(std::forward<A>(arguments)...);
  }

 private:
  std::shared_ptr<T> module_;
};
// The same, made of what the module is made of.
template <class T>
class ModuleHolder : public LayerHolder<T> {
 public:
  using LayerHolder<T>::LayerHolder;
  ModuleHolder() = default;
  template <class Head, class... Tail>
    requires std::constructible_from<T, Head, Tail...>
  explicit ModuleHolder(Head&& head, Tail&&... tail)
      : LayerHolder<T>(std::make_shared<T>(std::forward<Head>(head), std::forward<Tail>(tail)...)) {
  }
};

template <class H>
concept Holder = requires(const H& h) {
  h.ptr();
  *h;
};

class Module;
template <class M>
class ForeignModule;
// A class of modules: LibTorch's, or one of lazuli's own.
template <class M>
concept ModuleClass = std::derived_from<M, Module> || std::derived_from<M, lazuli::nn::Module>;
template <ModuleClass M>
struct Found;

// A pointer to a module in a container or in another module; copies point to the same module, but
// for those that clone() makes. A module of lazuli's own class is held by a ForeignModule.
class HeldModule : public std::shared_ptr<Module> {
 public:
  template <Holder H>
  HeldModule(const H& holder) : HeldModule(holder.ptr()) {}  // NOLINT(google-explicit-constructor)
  template <ModuleClass M>
  HeldModule(std::shared_ptr<M> module)  // NOLINT(google-explicit-constructor)
      : shared_ptr(Found<M>::AsModule(std::move(module))), copy_(Found<M>::Copier()) {}
  template <ModuleClass M>
  HeldModule(M module)  // NOLINT(google-explicit-constructor)
      : HeldModule(std::make_shared<M>(std::move(module))) {}
  HeldModule(const HeldModule& other)
      : shared_ptr(lazuli::nn::internal::CloneScope::Active() && other.copy_ != nullptr
                       ? other.copy_(other)
                       : static_cast<const shared_ptr&>(other)),
        copy_(other.copy_) {}
  HeldModule(HeldModule&&) noexcept = default;
  HeldModule& operator=(const HeldModule&) = default;
  HeldModule& operator=(HeldModule&&) noexcept = default;
  ~HeldModule() = default;
  // Null if the module is not a T.
  template <class T>
  auto* as() const;

 private:
  // Null if modules of the class are not copied: an abstract one.
  std::shared_ptr<Module> (*copy_)(const std::shared_ptr<Module>& module);
};

class Module : public lazuli::nn::Module, public std::enable_shared_from_this<Module> {
  using Core = lazuli::nn::Module;

 public:
  Module() = default;
  explicit Module(std::string name) : name_(std::move(name)) {}
  Module(const Module&) = default;
  Module& operator=(const Module&) = default;
  virtual ~Module() = default;
  // The one it was made with, else that of its class.
  std::string name() const { return name_.empty() ? Core::kind_of(typeid(*this)) : name_; }
  // What is printed of it: one line, without the modules in it.
  virtual void pretty_print(std::ostream& os) const { os << name(); }

  const std::string& given_name() const { return name_; }

  // Each returns what it registers: a holder, a shared pointer or a module.
  template <Holder H>
  H register_module(const std::string& name, H holder, LAZULI_LOC) {
    Register(name, holder, loc);
    return holder;
  }
  template <ModuleClass M>
  std::shared_ptr<M> register_module(const std::string& name, std::shared_ptr<M> module,
                                     LAZULI_LOC) {
    Register(name, module, loc);
    return module;
  }
  template <ModuleClass M>
  M register_module(const std::string& name, M module, LAZULI_LOC) {
    Register(name, module, loc);
    return module;
  }
  // Another module in the place of one that is registered.
  template <class M>
  M replace_module(const std::string& name, M module, LAZULI_LOC) {
    unregister_module(name, loc);
    return register_module(name, std::move(module), loc);
  }
  // Throws Error(kNotFound).
  void unregister_module(const std::string& name, LAZULI_LOC) {
    if (!Core::unregister(name))
      throw Error(ErrorCode::kNotFound, "unregister_module: there is no \"" + name + "\" (" +
                                            SiteScope::place(loc) + ")");
    if (children_.contains(name)) children_.erase(name);
  }
  Tensor register_parameter(const std::string& name, const Tensor& value, bool requires_grad = true,
                            LAZULI_LOC) {
    return Core::register_parameter(name, value, requires_grad, loc);
  }
  Tensor register_buffer(const std::string& name, const Tensor& value, LAZULI_LOC) {
    return Core::register_buffer(name, value, loc);
  }

  // --- what is in it. Unless `recurse`, without that of the modules in it.
  std::vector<Tensor> parameters() const { return Core::parameters(); }
  std::vector<Tensor> parameters(bool recurse) const { return named_parameters(recurse).values(); }
  OrderedDict<std::string, Tensor> named_parameters(bool recurse = true) const {
    return Chosen(Core::named_parameters(), recurse);
  }
  std::vector<Tensor> buffers() const { return Core::buffers(); }
  std::vector<Tensor> buffers(bool recurse) const { return named_buffers(recurse).values(); }
  OrderedDict<std::string, Tensor> named_buffers(bool recurse = true) const {
    return Chosen(Core::named_buffers(), recurse);
  }
  std::vector<std::shared_ptr<Module>> children() const {
    std::vector<std::shared_ptr<Module>> all;
    for (const auto& [name, child] : children_) all.push_back(child);
    return all;
  }
  OrderedDict<std::string, std::shared_ptr<Module>> named_children() const {
    OrderedDict<std::string, std::shared_ptr<Module>> all;
    for (const auto& [name, child] : children_) all.insert(name, child);
    return all;
  }
  // All modules in this one, by name, from the outermost; unless it is left out, this one is the
  // first, under the prefix.
  OrderedDict<std::string, std::shared_ptr<Module>> named_modules(const std::string& prefix = "",
                                                                  bool include_self = true) const {
    OrderedDict<std::string, std::shared_ptr<Module>> all;
    if (include_self) all.insert(prefix, Shared());
    Collect(prefix, all);
    return all;
  }
  std::vector<std::shared_ptr<Module>> modules(bool include_self = true) const {
    return named_modules("", include_self).values();
  }
  // Calls the function with this module and with all modules in it, from the outermost. It takes
  // what is one of these, by reference or as a shared pointer, and may take its name before.
  template <class F>
  void apply(const F& function, const std::string& prefix = "") const {
    for (auto& [name, module] : named_modules(prefix)) {
      if constexpr (std::invocable<const F&, Module&>)
        function(*module);
      else if constexpr (std::invocable<const F&, const std::string&, Module&>)
        function(name, *module);
      else if constexpr (std::invocable<const F&, const std::shared_ptr<Module>&>)
        function(module);
      else
        function(name, module);
    }
  }
  // This module if it is a T, else null: as<Linear>() or as<LinearImpl>().
  template <Holder T>
  typename T::ContainedType* as() {
    return as<typename T::ContainedType>();
  }
  template <Holder T>
  const typename T::ContainedType* as() const {
    return as<typename T::ContainedType>();
  }
  template <ModuleClass T>
  T* as() {
    return Found<T>::In(this);
  }
  template <ModuleClass T>
  const T* as() const {
    return Found<T>::In(const_cast<Module*>(this));
  }

  // --- training mode, of this and of all modules in it
  virtual void train(bool on = true) {
    Core::train(on);
    for (const auto& [name, child] : children_) child->train(on);
  }
  void eval() { train(false); }
  bool is_training() const { return Core::is_training(); }

  // --- its state. What lazuli's modules have is written out: a layer has two of them as bases.
  std::int64_t num_parameters() const { return Core::num_parameters(); }
  StateDict state_dict() const { return Core::state_dict(); }
  LoadReport load_state_dict(const StateDict& state, LoadOptions options = {}, LAZULI_LOC) {
    return Core::load_state_dict(state, options, loc);
  }
  void save(serialize::OutputArchive& archive, LAZULI_LOC) const {
    archive.write(state_dict(), loc);
  }
  void load(serialize::InputArchive& archive, LAZULI_LOC) {
    load_state_dict(archive.state(), {}, loc);
  }
  // To a device at once, whatever is said.
  void to(const Device& device, LAZULI_LOC) { Core::to(device, loc); }
  void to(DType dtype, LAZULI_LOC) { Core::to(dtype, loc); }
  void to(const Device& device, DType dtype, LAZULI_LOC) { Core::to(device, dtype, loc); }
  void to(const Device& device, bool /*non_blocking*/, LAZULI_LOC) { to(device, loc); }
  void to(const Device& device, DType dtype, bool /*non_blocking*/, LAZULI_LOC) {
    to(device, dtype, loc);
  }
  void to(DType dtype, bool /*non_blocking*/, LAZULI_LOC) { to(dtype, loc); }
  void zero_grad(LAZULI_LOC) { Core::zero_grad(loc); }
  void zero_grad(bool /*set_to_none*/, LAZULI_LOC) { zero_grad(loc); }  // they always go
  NameScope enter(std::string_view kind) const { return Core::enter(kind); }

 protected:
  void Keep(const std::string& name, HeldModule child) { children_.insert(name, std::move(child)); }
  // Registers the module, which has no name here yet.
  void Register(const std::string& name, const HeldModule& module, SourceLocation loc) {
    Core::register_module(name, *module, loc);
    Keep(name, module);
  }
  // This one and `core` are one module from now on.
  void Become(const Core& core) { static_cast<Core&>(*this) = core; }

 private:
  friend void PrintTree(std::ostream& os, const Module& module, const std::string& indent);
  // A pointer that keeps the module alive if a shared pointer owns it.
  std::shared_ptr<Module> Shared() const {
    auto* const self = const_cast<Module*>(this);
    std::shared_ptr<Module> owned = self->weak_from_this().lock();
    return owned != nullptr ? owned : std::shared_ptr<Module>(std::shared_ptr<void>(), self);
  }
  void Collect(const std::string& prefix,
               OrderedDict<std::string, std::shared_ptr<Module>>& all) const {
    for (const auto& [name, child] : children_) {
      const std::string path = prefix.empty() ? name : prefix + "." + name;
      all.insert(path, child);
      child->Collect(path, all);
    }
  }
  static OrderedDict<std::string, Tensor> Chosen(
      const std::vector<std::pair<std::string, Tensor>>& all, bool recurse) {
    OrderedDict<std::string, Tensor> found;
    for (const auto& [name, tensor] : all) {
      if (recurse || name.find('.') == std::string::npos) found.insert(name, tensor);
    }
    return found;
  }

  std::string name_;
  OrderedDict<std::string, HeldModule> children_;
};

// A module of lazuli's own class among LibTorch's.
template <class M>
class ForeignModule : public Module {
 public:
  explicit ForeignModule(std::shared_ptr<M> module) : held(std::move(module)) { Become(*held); }
  void pretty_print(std::ostream& os) const override {
    if constexpr (requires { held->pretty_print(os); })
      held->pretty_print(os);
    else
      os << lazuli::nn::Module::kind_of(typeid(M));
  }
  std::shared_ptr<M> held;
};

// How a module of class M is found behind a pointer to a Module, and made one.
template <ModuleClass M>
struct Found {
  static constexpr bool kForeign = !std::derived_from<M, Module>;
  // Null if it is not an M.
  static M* In(Module* module) {
    if constexpr (kForeign) {
      auto* const foreign = dynamic_cast<ForeignModule<M>*>(module);
      return foreign == nullptr ? nullptr : foreign->held.get();
    } else {
      return dynamic_cast<M*>(module);
    }
  }
  static std::shared_ptr<Module> AsModule(std::shared_ptr<M> module) {
    if constexpr (kForeign)
      return std::make_shared<ForeignModule<M>>(std::move(module));
    else
      return module;
  }
  // What copies such a module; null of what is not to be copied: an abstract class.
  static auto Copier() {
    std::shared_ptr<Module> (*copy)(const std::shared_ptr<Module>&) = nullptr;
    if constexpr (std::copy_constructible<M>) {
      copy = [](const std::shared_ptr<Module>& module) {
        const M* const original = In(module.get());
        // A pointer to a base does not know how to copy the rest.
        if (typeid(*original) != typeid(M)) return module;
        return AsModule(std::make_shared<M>(*original));
      };
    }
    return copy;
  }
};

template <class T>
auto* HeldModule::as() const {
  return get()->template as<T>();
}

// The module's line, and those of the modules in it below.
inline void PrintTree(std::ostream& os, const Module& module, const std::string& indent = "") {
  module.pretty_print(os);
  if (module.children_.empty()) return;
  os << "(\n";
  for (const auto& [name, child] : module.children_) {
    os << indent << "  (" << name << "): ";
    PrintTree(os, *child, indent + "  ");
    os << '\n';
  }
  os << indent << ')';
}
inline std::ostream& operator<<(std::ostream& os, const Module& module) {
  PrintTree(os, module);
  return os;
}
inline std::ostream& operator<<(std::ostream& os, const HeldModule& module) {
  return os << *module;
}
template <Holder H>
std::ostream& operator<<(std::ostream& os, const H& holder) {
  return os << HeldModule(holder);
}

// A copy of the module with parameters and modules of its own.
template <ModuleClass M>
std::shared_ptr<M> Cloned(const M& module, SourceLocation loc) {
  const lazuli::nn::internal::CloneScope scope(loc);
  return std::make_shared<M>(module);
}

// A module that clone() copies: reset() registers parameters and modules anew, which then take the
// elements of this one's.
template <class Derived>
class Cloneable : public Module {
 public:
  using Module::Module;
  virtual void reset() = 0;
  std::shared_ptr<Derived> clone(const std::optional<Device>& device = std::nullopt,
                                 LAZULI_LOC) const {
    auto copy = std::make_shared<Derived>(static_cast<const Derived&>(*this));
    static_cast<Module&>(*copy) = Module(this->given_name());
    copy->reset();
    copy->load_state_dict(this->state_dict(), {}, loc);
    copy->train(this->is_training());
    if (device) copy->to(*device, loc);
    return copy;
  }
};

#define TORCH_MODULE_IMPL(Name, Impl)                                  \
  class Name : public ::lazuli::torch_names::nn::ModuleHolder<Impl> {  \
   public:                                                             \
    using ::lazuli::torch_names::nn::ModuleHolder<Impl>::ModuleHolder; \
  }
// class Net, a holder of the class NetImpl.
#define TORCH_MODULE(Name) TORCH_MODULE_IMPL(Name, Name##Impl)

// A layer of lazuli's, L, as the class Impl of LibTorch's: both bases are one module.
template <class Impl, class L>
class LayerWords : public Module, public L {
 public:
  template <class... A>
    requires std::constructible_from<L, A...>
  explicit LayerWords(A&&... arguments) : L(std::forward<A>(arguments)...) {
    Become(static_cast<const L&>(*this));
  }
  // As it prints.
  std::string name() const {
    std::ostringstream text;
    this->pretty_print(text);
    return text.str();
  }
  using Module::buffers;
  using Module::enter;
  using Module::eval;
  using Module::is_training;
  using Module::load_state_dict;
  using Module::named_buffers;
  using Module::named_parameters;
  using Module::num_parameters;
  using Module::parameters;
  using Module::register_buffer;
  using Module::register_module;
  using Module::register_parameter;
  using Module::state_dict;
  using Module::to;
  using Module::train;
  using Module::zero_grad;
  // With parameters of its own.
  std::shared_ptr<Impl> clone(const std::optional<Device>& device = std::nullopt,
                              LAZULI_LOC) const {
    auto copy = Cloned(Own(), loc);
    if (device) copy->to(*device, loc);
    return copy;
  }
  // Parameters and buffers as those of a new layer, in their place.
  void reset_parameters(LAZULI_LOC) {
    if constexpr (requires { Impl(Own().options, loc); })
      this->load_state_dict(Impl(Own().options, loc).state_dict(), {}, loc);
  }
  void reset(LAZULI_LOC) { reset_parameters(loc); }

 private:
  const Impl& Own() const { return static_cast<const Impl&>(*this); }
};

}  // namespace nn
}  // namespace lazuli::torch_names
