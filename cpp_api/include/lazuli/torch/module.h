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

class Parent;
class HeldModule;

// The module's line, and those of the modules in it below.
inline void PrintTree(std::ostream& os, const HeldModule& module, const std::string& indent = "");

// A module of any type in a container or in another module: a pointer to it, which as<T>() gives if it is a T. A T is a
// class of modules, or a holder, which stands for the class it holds.
class HeldModule {
 public:
  template <Holder H>
  HeldModule(const H& holder) : HeldModule(holder.ptr()) {}  // NOLINT(google-explicit-constructor)
  template <std::derived_from<lazuli::nn::Module> M>
  HeldModule(std::shared_ptr<M> module)  // NOLINT(google-explicit-constructor)
      : module_(module.get()),
        type_(&typeid(M)),
        object_(std::move(module)),
        print_([](std::ostream& os, const void* object) {
          if constexpr (requires(const M& m) { m.pretty_print(os); })
            static_cast<const M*>(object)->pretty_print(os);
          else
            os << lazuli::nn::Module::kind_of(typeid(M));
        }),
        copy_(CopyOf<M>()) {
    if constexpr (std::derived_from<M, Parent>) parent_ = static_cast<M*>(object_.get());
  }
  template <std::derived_from<lazuli::nn::Module> M>
  HeldModule(M module)  // NOLINT(google-explicit-constructor)
      : HeldModule(std::make_shared<M>(std::move(module))) {}
  // The same module, but for that which clone() makes.
  HeldModule(const HeldModule& other)
      : HeldModule(lazuli::nn::internal::CloneScope::Active() && other.copy_ != nullptr
                       ? other.copy_(other.object_.get())
                       : HeldModule(other, Share())) {}
  HeldModule(HeldModule&&) noexcept = default;
  HeldModule& operator=(const HeldModule&) = default;
  HeldModule& operator=(HeldModule&&) noexcept = default;
  ~HeldModule() = default;

  // Null if the module is no T.
  template <Holder T>
  typename T::ContainedType* as() const {
    return as<typename T::ContainedType>();
  }
  template <std::derived_from<lazuli::nn::Module> T>
  T* as() const {
    return *type_ == typeid(T) ? static_cast<T*>(object_.get()) : nullptr;
  }
  const std::type_info& type_info() const { return *type_; }
  const HeldModule* operator->() const { return this; }
  lazuli::nn::Module& operator*() const { return *module_; }
  const HeldModule& ptr() const { return *this; }
  std::vector<Tensor> parameters() const { return module_->parameters(); }
  void train(bool on = true) const { module_->train(on); }
  void eval() const { module_->eval(); }
  bool is_training() const { return module_->is_training(); }
  void pretty_print(std::ostream& os) const { print_(os, object_.get()); }
  // As it prints, without the modules in it.
  std::string name() const {
    std::ostringstream text;
    pretty_print(text);
    return text.str();
  }
  // Those registered in it, by name.
  inline const OrderedDict<std::string, HeldModule>& named_children() const;

 private:
  struct Share {};
  HeldModule(const HeldModule& other, Share)
      : module_(other.module_),
        type_(other.type_),
        object_(other.object_),
        print_(other.print_),
        copy_(other.copy_),
        parent_(other.parent_) {}

  using Copy = HeldModule (*)(const void* object);
  // Null of what is not to be copied: an abstract class.
  template <class M>
  static Copy CopyOf() {
    if constexpr (std::copy_constructible<M>)
      return [](const void* object) {
        return HeldModule(std::make_shared<M>(*static_cast<const M*>(object)));
      };
    else
      return nullptr;
  }

  lazuli::nn::Module* module_;
  const std::type_info* type_;
  std::shared_ptr<void> object_;
  void (*print_)(std::ostream& os, const void* object);
  Copy copy_;
  const Parent* parent_ = nullptr;  // the module, if it knows its children
};

// What knows the modules in it with their types.
class Parent {
 public:
  using Children = OrderedDict<std::string, HeldModule>;
  const Children& named_children() const { return children_; }
  std::vector<HeldModule> children() const {
    std::vector<HeldModule> all;
    for (const auto& [name, child] : children_) all.push_back(child);
    return all;
  }

 protected:
  void Keep(const std::string& name, HeldModule child) { children_.insert(name, std::move(child)); }
  void Drop(const std::string& name) {
    if (children_.contains(name)) children_.erase(name);
  }

 private:
  Children children_;
};
inline const Parent::Children& HeldModule::named_children() const {
  static const Parent::Children none;
  return parent_ == nullptr ? none : parent_->named_children();
}
inline void PrintTree(std::ostream& os, const HeldModule& module, const std::string& indent) {
  module.pretty_print(os);
  if (module.named_children().empty()) return;
  os << "(\n";
  for (const auto& [name, child] : module.named_children()) {
    os << indent << "  (" << name << "): ";
    PrintTree(os, child, indent + "  ");
    os << '\n';
  }
  os << indent << ')';
}
inline std::ostream& operator<<(std::ostream& os, const HeldModule& module) {
  PrintTree(os, module);
  return os;
}
template <Holder H>
std::ostream& operator<<(std::ostream& os, const H& holder) {
  PrintTree(os, holder);
  return os;
}
// Of a module as it is: *net.
template <class M>
  requires std::derived_from<M, lazuli::nn::Module> && (!std::same_as<M, HeldModule>)
std::ostream& operator<<(std::ostream& os, const M& module) {
  // It is only looked at while this prints.
  PrintTree(os, std::shared_ptr<M>(const_cast<M*>(&module), [](M*) {}));
  return os;
}

class Module : public lazuli::nn::Module, public Parent {
 public:
  Module() = default;
  explicit Module(std::string name) : name_(std::move(name)) {}
  Module(const Module&) = default;
  Module& operator=(const Module&) = default;
  virtual ~Module() = default;
  // The one it was made with, else that of its class.
  std::string name() const {
    if (!name_.empty()) return name_;
    return held_ ? held_->name() : lazuli::nn::Module::kind_of(typeid(*this));
  }
  virtual void pretty_print(std::ostream& os) const { os << name(); }

  const std::string& given_name() const { return name_; }

  // Each returns what it registers: a holder, a shared pointer or a module.
  template <Holder H>
  H register_module(const std::string& name, H holder, LAZULI_LOC) {
    lazuli::nn::Module::register_module(name, *holder, loc);
    Keep(name, holder);
    return holder;
  }
  template <std::derived_from<lazuli::nn::Module> M>
  std::shared_ptr<M> register_module(const std::string& name, std::shared_ptr<M> module,
                                     LAZULI_LOC) {
    lazuli::nn::Module::register_module(name, *module, loc);
    Keep(name, module);
    return module;
  }
  template <std::derived_from<lazuli::nn::Module> M>
  M register_module(const std::string& name, M module, LAZULI_LOC) {
    lazuli::nn::Module::register_module(name, module, loc);
    Keep(name, module);
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
    if (!lazuli::nn::Module::unregister(name))
      throw Error(ErrorCode::kNotFound, "unregister_module: there is no \"" + name + "\" (" +
                                            SiteScope::place(loc) + ")");
    Drop(name);
  }
  Tensor register_parameter(const std::string& name, const Tensor& value, bool requires_grad = true,
                            LAZULI_LOC) {
    return lazuli::nn::Module::register_parameter(name, value, requires_grad, loc);
  }
  Tensor register_buffer(const std::string& name, const Tensor& value, LAZULI_LOC) {
    return lazuli::nn::Module::register_buffer(name, value, loc);
  }
  // Without those of the modules in it, unless recurse.
  OrderedDict<std::string, Tensor> named_parameters(bool recurse = true) const {
    OrderedDict<std::string, Tensor> found;
    for (const auto& [name, tensor] : lazuli::nn::Module::named_parameters()) {
      if (recurse || name.find('.') == std::string::npos) found.insert(name, tensor);
    }
    return found;
  }
  void save(serialize::OutputArchive& archive, LAZULI_LOC) const {
    archive.write(state_dict(), loc);
  }
  void load(serialize::InputArchive& archive, LAZULI_LOC) {
    load_state_dict(archive.state(), {}, loc);
  }
  // To a device at once, whatever is said.
  using lazuli::nn::Module::to;
  void to(const Device& device, bool /*non_blocking*/, LAZULI_LOC) { to(device, loc); }
  void to(const Device& device, DType dtype, bool /*non_blocking*/, LAZULI_LOC) {
    to(device, dtype, loc);
  }
  using lazuli::nn::Module::parameters;
  // Without those of the modules in it, unless recurse.
  std::vector<Tensor> parameters(bool recurse) const { return named_parameters(recurse).values(); }
  OrderedDict<std::string, Tensor> named_buffers() const {
    return OrderedDict<std::string, Tensor>(lazuli::nn::Module::named_buffers());
  }

  // This module, or what it stands for in apply(), if it is a T: as<Linear>(), or null.
  template <Holder T>
  typename T::ContainedType* as() {
    return as<typename T::ContainedType>();
  }
  template <std::derived_from<lazuli::nn::Module> T>
  T* as() {
    if (held_) return held_->as<T>();
    if constexpr (std::derived_from<T, Module>)
      return dynamic_cast<T*>(this);
    else
      return nullptr;
  }
  // Calls the function with all modules in this one, from the innermost, and this one last.
  void apply(const std::function<void(Module&)>& function) {
    for (const auto& [name, child] : named_children()) Apply(child, function);
    function(*this);
  }
  // All modules in this one, by name, from the outermost; it is among them under its own name.
  OrderedDict<std::string, std::shared_ptr<Module>> named_modules(
      const std::string& prefix = "") const {
    std::vector<std::pair<std::string, std::shared_ptr<Module>>> all;
    all.emplace_back(prefix, std::make_shared<Module>(*this));
    for (const auto& [name, child] : named_children()) Collect(Joined(prefix, name), child, all);
    return OrderedDict<std::string, std::shared_ptr<Module>>(std::move(all));
  }
  std::vector<std::shared_ptr<Module>> modules(bool include_self = true) const {
    std::vector<std::shared_ptr<Module>> all = named_modules().values();
    if (!include_self) all.erase(all.begin());
    return all;
  }

 private:
  explicit Module(const HeldModule& held)
      : lazuli::nn::Module(*held), held_(std::make_shared<HeldModule>(held)) {}
  static std::string Joined(const std::string& prefix, const std::string& name) {
    return prefix.empty() ? name : prefix + "." + name;
  }
  static void Apply(const HeldModule& held, const std::function<void(Module&)>& function) {
    for (const auto& [name, child] : held.named_children()) Apply(child, function);
    Module module(held);
    function(module);
  }
  static void Collect(const std::string& name, const HeldModule& held,
                      std::vector<std::pair<std::string, std::shared_ptr<Module>>>& all) {
    all.emplace_back(name, std::make_shared<Module>(Module(held)));
    for (const auto& [child_name, child] : held.named_children())
      Collect(Joined(name, child_name), child, all);
  }

  std::string name_;
  std::shared_ptr<const HeldModule> held_;  // what this one stands for; mostly nothing
};

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

// What LibTorch's layers have beside lazuli's: L with those, as the class Impl of a layer.
template <class Impl, class L>
class LayerWords : public L {
 public:
  using L::L;
  std::string name() const { return HeldModule(Pointer()).name(); }
  OrderedDict<std::string, Tensor> named_parameters(bool /*recurse*/ = true) const {
    return OrderedDict<std::string, Tensor>(L::named_parameters());
  }
  using L::parameters;
  std::vector<Tensor> parameters(bool /*recurse*/) const { return parameters(); }
  std::vector<HeldModule> children() const { return {}; }
  OrderedDict<std::string, Tensor> named_buffers(bool /*recurse*/ = true) const {
    return OrderedDict<std::string, Tensor>(L::named_buffers());
  }
  using L::to;
  void to(const Device& device, bool /*non_blocking*/, LAZULI_LOC) { to(device, loc); }
  void save(serialize::OutputArchive& archive, LAZULI_LOC) const {
    archive.write(this->state_dict(), loc);
  }
  void load(serialize::InputArchive& archive, LAZULI_LOC) {
    this->load_state_dict(archive.state(), {}, loc);
  }
  // With parameters of its own.
  std::shared_ptr<Impl> clone(const std::optional<Device>& device = std::nullopt,
                              LAZULI_LOC) const {
    auto copy = std::make_shared<Impl>(lazuli::nn::clone(Own(), loc));
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
  // It is only looked at.
  std::shared_ptr<Impl> Pointer() const {
    return std::shared_ptr<Impl>(const_cast<Impl*>(&Own()), [](Impl*) {});
  }
};

}  // namespace nn
}  // namespace lazuli::torch_names
