// Optimisers in LibTorch's words: SGD(net->parameters(), SGDOptions(0.01).momentum(0.5)).
#pragma once

#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lazuli/optim.h"
#include "lazuli/torch/tensor.h"

namespace lazuli::torch_names {
namespace optim {

using namespace lazuli::optim;

// An option of LibTorch's name: the setter, and the value.
#define LAZULI_OPTION(Class, type, name)                   \
  Class& name(type v) { return options_.name = v, *this; } \
  type name() const { return options_.name; }

class SGDOptions {
 public:
  SGDOptions(double lr) { options_.lr = lr; }  // NOLINT(google-explicit-constructor)
  LAZULI_OPTION(SGDOptions, double, lr)
  LAZULI_OPTION(SGDOptions, double, momentum)
  LAZULI_OPTION(SGDOptions, double, dampening)
  LAZULI_OPTION(SGDOptions, double, weight_decay)
  LAZULI_OPTION(SGDOptions, bool, nesterov)
  const lazuli::optim::SGDOptions& get() const { return options_; }

 private:
  lazuli::optim::SGDOptions options_;
};

template <class O>
class AdamOptionsOf {
 public:
  AdamOptionsOf(double lr = 1e-3) { options_.lr = lr; }  // NOLINT(google-explicit-constructor)
  LAZULI_OPTION(AdamOptionsOf, double, lr)
  LAZULI_OPTION(AdamOptionsOf, double, eps)
  LAZULI_OPTION(AdamOptionsOf, double, weight_decay)
  LAZULI_OPTION(AdamOptionsOf, bool, amsgrad)
  AdamOptionsOf& betas(std::tuple<double, double> v) {
    return options_.betas = {std::get<0>(v), std::get<1>(v)}, *this;
  }
  std::tuple<double, double> betas() const { return options_.betas; }
  const O& get() const { return options_; }

 private:
  O options_;
};
using AdamOptions = AdamOptionsOf<lazuli::optim::AdamOptions>;
using AdamWOptions = AdamOptionsOf<lazuli::optim::AdamWOptions>;

class RMSpropOptions {
 public:
  RMSpropOptions(double lr = 1e-2) { options_.lr = lr; }  // NOLINT(google-explicit-constructor)
  LAZULI_OPTION(RMSpropOptions, double, lr)
  LAZULI_OPTION(RMSpropOptions, double, alpha)
  LAZULI_OPTION(RMSpropOptions, double, eps)
  LAZULI_OPTION(RMSpropOptions, double, weight_decay)
  LAZULI_OPTION(RMSpropOptions, double, momentum)
  LAZULI_OPTION(RMSpropOptions, bool, centered)
  const lazuli::optim::RMSpropOptions& get() const { return options_; }

 private:
  lazuli::optim::RMSpropOptions options_;
};

class AdagradOptions {
 public:
  AdagradOptions(double lr = 1e-2) { options_.lr = lr; }  // NOLINT(google-explicit-constructor)
  LAZULI_OPTION(AdagradOptions, double, lr)
  LAZULI_OPTION(AdagradOptions, double, lr_decay)
  LAZULI_OPTION(AdagradOptions, double, weight_decay)
  LAZULI_OPTION(AdagradOptions, double, initial_accumulator_value)
  LAZULI_OPTION(AdagradOptions, double, eps)
  const lazuli::optim::AdagradOptions& get() const { return options_; }

 private:
  lazuli::optim::AdagradOptions options_;
};
#undef LAZULI_OPTION

// The optimiser with such options, and with steps that compute the loss.
template <class Optimizer, class Options>
class Named : public Optimizer {
 public:
  Named(std::vector<Tensor> parameters, const Options& options, LAZULI_LOC)
      : Optimizer(std::move(parameters), options.get(), loc) {}
  explicit Named(std::vector<Tensor> parameters, LAZULI_LOC)
      : Optimizer(std::move(parameters), {}, loc) {}
  using Optimizer::step;
  // Calls the closure, which computes the loss and its gradients, and then steps.
  Tensor step(const std::function<Tensor()>& closure, LAZULI_LOC) {
    Tensor loss = closure();
    Optimizer::step(loc);
    return loss;
  }
};
using SGD = Named<lazuli::optim::SGD, SGDOptions>;
using Adam = Named<lazuli::optim::Adam, AdamOptions>;
using AdamW = Named<lazuli::optim::AdamW, AdamWOptions>;
using RMSprop = Named<lazuli::optim::RMSprop, RMSpropOptions>;
using Adagrad = Named<lazuli::optim::Adagrad, AdagradOptions>;

}  // namespace optim

inline void save(const optim::Optimizer& optimizer, const std::string& path, LAZULI_LOC) {
  lazuli::optim::save(optimizer, path, loc);
}
inline void load(optim::Optimizer& optimizer, const std::string& path, LAZULI_LOC) {
  lazuli::optim::load(optimizer, path, loc);
}

}  // namespace lazuli::torch_names
