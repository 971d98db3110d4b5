// Neural networks: modules that own parameters, the usual layers, and losses.
//
// A module is a handle: copies share their parameters, and clone() makes independent ones. A
// network is a struct that derives from Module, holds its layers by value, registers them in its
// constructor and has a forward() of any signature:
//
//   struct Net : lazuli::nn::Module {
//     lazuli::nn::Linear fc1{784, 100}, fc2{100, 10};
//     Net() { register_modules({{"fc1", fc1}, {"fc2", fc2}}); }
//     lazuli::Tensor forward(const lazuli::Tensor& x) { return fc2(lazuli::relu(fc1(x))); }
//   };
//
// Layers are called, `fc1(x)`, or by forward(x); what they record carries the line of that call.
// Parameters are f32 on the default device unless moved by to(), and start as PyTorch's do.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "lazuli/execution.h"
#include "lazuli/ops.h"
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
  // State that is no parameter, such as running means: moved by to() and copied by clone(), but not
  // trained.
  Parameter register_buffer(const std::string& name, const Tensor& value, LAZULI_LOC);

  // --- what the module and the modules in it own, in the order of registration, each tensor once.
  std::vector<Tensor> parameters() const;
  // Names have dots: "conv1.weight". The same names stand in dumps, by the outermost module that
  // registered the parameter.
  std::vector<std::pair<std::string, Tensor>> named_parameters() const;
  std::vector<std::pair<std::string, Tensor>> named_buffers() const;
  std::int64_t num_parameters() const;  // elements

  // Training mode, on at first, of this and all modules in it: Dropout does nothing in evaluation.
  void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const;

  // Moves parameters and buffers. They stay the same tensors, so optimisers keep them; gradients
  // are dropped.
  void to(const Device& device, LAZULI_LOC);
  // Drops the gradients of all parameters.
  void zero_grad(LAZULI_LOC);

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

// What has a forward(x): gives it the call operator.
template <class Derived>
class Layer : public Module {
 public:
  Tensor operator()(const Tensor& x, SourceLocation loc = SourceLocation::current()) const {
    return static_cast<const Derived&>(*this).forward(x, loc);
  }
};

// x weight^T + bias: [..., in_features] to [..., out_features].
struct LinearOptions {
  bool bias = true;
};
class LAZULI_API Linear : public Layer<Linear> {
 public:
  Linear(std::int64_t in_features, std::int64_t out_features, const LinearOptions& options = {},
         LAZULI_LOC);
  Tensor forward(const Tensor& x, LAZULI_LOC) const;
  Parameter weight;  // [out_features, in_features]
  Parameter bias;    // [out_features], or undefined
};

// Two numbers, for height and width; one number stands for both.
struct Size2 {
  Size2(int both) : height(both), width(both) {}           // NOLINT(google-explicit-constructor)
  Size2(std::int64_t both) : height(both), width(both) {}  // NOLINT(google-explicit-constructor)
  Size2(std::int64_t h, std::int64_t w) : height(h), width(w) {}
  std::int64_t height, width;
};

// Cross-correlation: [N, in_channels, H, W] to [N, out_channels, H', W'].
struct Conv2dOptions {
  Size2 stride = 1, padding = 0, dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
};
class LAZULI_API Conv2d : public Layer<Conv2d> {
 public:
  Conv2d(std::int64_t in_channels, std::int64_t out_channels, Size2 kernel,
         const Conv2dOptions& options = {}, LAZULI_LOC);
  Tensor forward(const Tensor& x, LAZULI_LOC) const;
  Parameter weight;  // [out_channels, in_channels / groups, kernel height, kernel width]
  Parameter bias;    // [out_channels], or undefined

 private:
  lazuli::Conv2dOptions options_;
};

// The largest of each window: [N, C, H, W] to [N, C, H', W'].
struct MaxPool2dOptions {
  std::int64_t stride = 0;  // 0: the kernel's size
  std::int64_t padding = 0;
};
class LAZULI_API MaxPool2d : public Layer<MaxPool2d> {
 public:
  explicit MaxPool2d(std::int64_t kernel, const MaxPool2dOptions& options = {}, LAZULI_LOC);
  Tensor forward(const Tensor& x, LAZULI_LOC) const;

 private:
  std::int64_t kernel_;
  MaxPool2dOptions options_;
};

// One dim in place of dims start_dim to end_dim.
class LAZULI_API Flatten : public Layer<Flatten> {
 public:
  explicit Flatten(std::int64_t start_dim = 1, std::int64_t end_dim = -1)
      : start_(start_dim), end_(end_dim) {}
  Tensor forward(const Tensor& x, LAZULI_LOC) const;

 private:
  std::int64_t start_, end_;
};

// In training, zeroes each element with probability p and scales the rest by 1 / (1 - p); nothing
// in evaluation.
class LAZULI_API Dropout : public Layer<Dropout> {
 public:
  explicit Dropout(double p = 0.5, LAZULI_LOC);
  Tensor forward(const Tensor& x, LAZULI_LOC) const;

 private:
  double p_;
};

// Elementwise; ops.h has the formulas.
struct LAZULI_API ReLU : Layer<ReLU> {
  Tensor forward(const Tensor& x, LAZULI_LOC) const;
};
struct LAZULI_API Tanh : Layer<Tanh> {
  Tensor forward(const Tensor& x, LAZULI_LOC) const;
};
struct LAZULI_API Sigmoid : Layer<Sigmoid> {
  Tensor forward(const Tensor& x, LAZULI_LOC) const;
};
struct LAZULI_API GELU : Layer<GELU> {
  Tensor forward(const Tensor& x, LAZULI_LOC) const;
};

// A module or function of one tensor whose type is not known.
class LAZULI_API AnyModule : public Layer<AnyModule> {
 public:
  template <class M>
    requires(!std::same_as<M, AnyModule>)
  explicit AnyModule(M module) : held_(std::make_shared<Holder<M>>(std::move(module))) {
    if constexpr (std::derived_from<M, Module>) {
      static_cast<Module&>(*this) = static_cast<const Holder<M>&>(*held_).module;
    }
  }
  AnyModule(const AnyModule& other)
      : Layer(other), held_(internal::CloneScope::Active() ? other.held_->Copy() : other.held_) {}
  AnyModule(AnyModule&&) noexcept = default;
  AnyModule& operator=(const AnyModule&) = default;
  AnyModule& operator=(AnyModule&&) noexcept = default;

  Tensor forward(const Tensor& x, LAZULI_LOC) const {
    const SiteScope site(loc);
    return held_->Forward(x);
  }
  // A handle of the module if it is an M, else null.
  template <class M>
  const M* get() const {
    const auto* holder = dynamic_cast<const Holder<M>*>(held_.get());
    return holder ? &holder->module : nullptr;
  }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual Tensor Forward(const Tensor& x) = 0;
    virtual std::shared_ptr<Base> Copy() const = 0;
  };
  template <class M>
  struct Holder final : Base {
    explicit Holder(M m) : module(std::move(m)) {}
    Tensor Forward(const Tensor& x) override {
      if constexpr (requires { module.forward(x); }) {
        return module.forward(x);
      } else {
        return module(x);
      }
    }
    std::shared_ptr<Base> Copy() const override { return std::make_shared<Holder>(module); }
    M module;
  };
  std::shared_ptr<Base> held_;
};

// Modules and functions of one tensor, called one after the other. Their names are their positions:
// "0.weight".
//
//   Sequential net(Conv2d(1, 32, 3), ReLU(), [](const Tensor& x) { return max_pool2d(x, 2); },
//   Flatten(), Linear(5408, 10));
class LAZULI_API Sequential : public Layer<Sequential> {
 public:
  Sequential() = default;
  template <class First, class... Rest>
    requires(!std::same_as<First, Sequential> || sizeof...(Rest) > 0)
  explicit Sequential(First first, Rest... rest) {
    push_back(std::move(first));
    (push_back(std::move(rest)), ...);
  }
  template <class M>
  void push_back(M module, SourceLocation loc = SourceLocation::current()) {
    Append(AnyModule(std::move(module)), loc);
  }
  Tensor forward(const Tensor& x, LAZULI_LOC) const;
  std::size_t size() const { return modules_.size(); }
  // Throws Error(kOutOfRange).
  const AnyModule& at(std::size_t i, LAZULI_LOC) const;
  const AnyModule& operator[](std::size_t i) const { return at(i); }

 private:
  void Append(AnyModule module, SourceLocation loc);
  std::vector<AnyModule> modules_;
};

// What a loss does with the losses of its elements.
enum class Reduction : std::uint8_t { kNone, kMean, kSum };

// Losses, and the functions of ops.h that networks use under PyTorch's roof.
namespace functional {

using lazuli::conv2d;
using lazuli::dropout;
using lazuli::gelu;
using lazuli::log_softmax;
using lazuli::max_pool2d;
using lazuli::one_hot;
using lazuli::relu;
using lazuli::sigmoid;
using lazuli::silu;
using lazuli::softmax;
using lazuli::tanh;

// -log(softmax(logits)) at the target class: logits [N, C, ...] of a float dtype, target [N, ...]
// of integers in [0, C). A target out of range fails the run. kNone gives [N, ...], else a scalar.
LAZULI_API Tensor cross_entropy(const Tensor& logits, const Tensor& target,
                                Reduction reduction = Reduction::kMean, LAZULI_LOC);
// -log_probs at the target class; shapes as cross_entropy's.
LAZULI_API Tensor nll_loss(const Tensor& log_probs, const Tensor& target,
                           Reduction reduction = Reduction::kMean, LAZULI_LOC);
// (x - y)^2, broadcasting.
LAZULI_API Tensor mse_loss(const Tensor& x, const Tensor& y, Reduction reduction = Reduction::kMean,
                           LAZULI_LOC);

}  // namespace functional
}  // namespace lazuli::nn
