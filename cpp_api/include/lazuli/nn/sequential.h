// Modules and functions whose types are not known, and such one after the other.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lazuli/nn/module.h"

namespace lazuli::nn {

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
    push_back(std::to_string(size()), std::move(module), loc);
  }
  // Under a name of its own.
  template <class M>
  void push_back(const std::string& name, M module,
                 SourceLocation loc = SourceLocation::current()) {
    Append(name, AnyModule(std::move(module)), loc);
  }
  Tensor forward(const Tensor& x, LAZULI_LOC) const;
  std::size_t size() const { return modules_.size(); }
  // Throws Error(kOutOfRange).
  const AnyModule& at(std::size_t i, LAZULI_LOC) const;
  const AnyModule& operator[](std::size_t i) const { return at(i); }

 private:
  void Append(const std::string& name, AnyModule module, SourceLocation loc);
  std::vector<AnyModule> modules_;
};

}  // namespace lazuli::nn
