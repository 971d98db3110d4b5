// What optimisers keep of their options, a struct such as SGDOptions: OptionsOf<SGDOptions>.
//
// Programs that are written for LibTorch build options with it, too: SGDOptions(0.1).momentum(0.9).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "lazuli/export.h"

namespace lazuli::optim {

// The options of a group of parameters, whatever the optimiser.
class LAZULI_API OptimizerOptions {
 public:
  virtual ~OptimizerOptions() = default;
  virtual double get_lr() const = 0;
  virtual void set_lr(double lr) = 0;
  virtual std::unique_ptr<OptimizerOptions> clone() const = 0;

 protected:
  OptimizerOptions() = default;
  OptimizerOptions(const OptimizerOptions&) = default;
  OptimizerOptions& operator=(const OptimizerOptions&) = default;
};

template <class O>
class OptionsOf final : public OptimizerOptions {
 public:
  OptionsOf(double lr = O().lr) { options_.lr = lr; }  // NOLINT(google-explicit-constructor)
  OptionsOf(const O& options) : options_(options) {}   // NOLINT(google-explicit-constructor)
  double get_lr() const override { return options_.lr; }
  void set_lr(double lr) override { options_.lr = lr; }
  std::unique_ptr<OptimizerOptions> clone() const override {
    return std::make_unique<OptionsOf>(*this);
  }
  O& get() { return options_; }
  const O& get() const { return options_; }

  // One that the struct has: the setter, and the value.
#define LAZULI_OPTION(type, name)      \
  OptionsOf& name(type v)              \
    requires requires(O o) { o.name; } \
  {                                    \
    options_.name = std::move(v);      \
    return *this;                      \
  }                                    \
  type name() const                    \
    requires requires(O o) { o.name; } \
  {                                    \
    return options_.name;              \
  }
  LAZULI_OPTION(double, lr)
  LAZULI_OPTION(double, lr_decay)
  LAZULI_OPTION(double, lambd)
  LAZULI_OPTION(double, alpha)
  LAZULI_OPTION(double, t0)
  LAZULI_OPTION(double, rho)
  LAZULI_OPTION(double, d)
  LAZULI_OPTION(double, beta2_decay)
  LAZULI_OPTION(double, eps)
  LAZULI_OPTION(double, momentum)
  LAZULI_OPTION(double, momentum_decay)
  LAZULI_OPTION(double, dampening)
  LAZULI_OPTION(double, weight_decay)
  LAZULI_OPTION(double, tolerance_grad)
  LAZULI_OPTION(double, tolerance_change)
  LAZULI_OPTION(std::int64_t, max_iter)
  LAZULI_OPTION(std::int64_t, history_size)
  LAZULI_OPTION(std::optional<std::int64_t>, max_eval)
  LAZULI_OPTION(std::optional<std::string>, line_search_fn)
  LAZULI_OPTION(std::optional<std::string>, adjust_lr_fn)
  LAZULI_OPTION(std::int64_t, ns_steps)
  LAZULI_OPTION(double, initial_accumulator_value)
  LAZULI_OPTION(bool, nesterov)
  LAZULI_OPTION(bool, amsgrad)
  LAZULI_OPTION(bool, centered)
  LAZULI_OPTION(bool, decoupled_weight_decay)
  LAZULI_OPTION(bool, maximize)
#undef LAZULI_OPTION
#define LAZULI_OPTION(name)                           \
  OptionsOf& name(std::tuple<double, double> v)       \
    requires requires(O o) { o.name; }                \
  {                                                   \
    options_.name = {std::get<0>(v), std::get<1>(v)}; \
    return *this;                                     \
  }                                                   \
  std::tuple<double, double> name() const             \
    requires requires(O o) { o.name; }                \
  {                                                   \
    return options_.name;                             \
  }
  LAZULI_OPTION(betas)
  LAZULI_OPTION(etas)
  LAZULI_OPTION(step_sizes)
#undef LAZULI_OPTION
  OptionsOf& ns_coefficients(std::tuple<double, double, double> v)
    requires requires(O o) { o.ns_coefficients; }
  {
    options_.ns_coefficients = {std::get<0>(v), std::get<1>(v), std::get<2>(v)};
    return *this;
  }
  std::tuple<double, double, double> ns_coefficients() const
    requires requires(O o) { o.ns_coefficients; }
  {
    return std::tuple_cat(options_.ns_coefficients);
  }

 private:
  O options_;
};

// Calls f("lr", options.lr) and so on; the two of a pair are "betas.first" and "betas.second", those of
// an array "ns_coefficients.0" and so on.
template <class O, class F>
void VisitOptions(O& o, F f) {
  const auto visit = [&f](const char* name, auto& value) {
    if constexpr (requires { value.second; }) {
      f(std::string(name) + ".first", value.first);
      f(std::string(name) + ".second", value.second);
    } else if constexpr (requires { value.fill(0); }) {
      for (std::size_t i = 0; i < value.size(); ++i)
        f(std::string(name) + "." + std::to_string(i), value[i]);
    } else {
      f(std::string(name), value);
    }
  };
#define LAZULI_OPTION(name) \
  if constexpr (requires { o.name; }) visit(#name, o.name);
  LAZULI_OPTION(lr)
  LAZULI_OPTION(momentum)
  LAZULI_OPTION(dampening)
  LAZULI_OPTION(lr_decay)
  LAZULI_OPTION(lambd)
  LAZULI_OPTION(alpha)
  LAZULI_OPTION(t0)
  LAZULI_OPTION(rho)
  LAZULI_OPTION(betas)
  LAZULI_OPTION(etas)
  LAZULI_OPTION(step_sizes)
  LAZULI_OPTION(beta2_decay)
  LAZULI_OPTION(d)
  LAZULI_OPTION(eps)
  LAZULI_OPTION(weight_decay)
  LAZULI_OPTION(max_iter)
  LAZULI_OPTION(max_eval)
  LAZULI_OPTION(tolerance_grad)
  LAZULI_OPTION(tolerance_change)
  LAZULI_OPTION(history_size)
  LAZULI_OPTION(line_search_fn)
  LAZULI_OPTION(ns_coefficients)
  LAZULI_OPTION(ns_steps)
  LAZULI_OPTION(adjust_lr_fn)
  LAZULI_OPTION(initial_accumulator_value)
  LAZULI_OPTION(momentum_decay)
  LAZULI_OPTION(decoupled_weight_decay)
  LAZULI_OPTION(nesterov)
  LAZULI_OPTION(amsgrad)
  LAZULI_OPTION(centered)
  LAZULI_OPTION(maximize)
#undef LAZULI_OPTION
}

}  // namespace lazuli::optim
