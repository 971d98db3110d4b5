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

// An option that a struct of options has: the setter, and the value.
#define LAZULI_OPTION(type, name)      \
  OptionsOf& name(type v)              \
    requires requires(O o) { o.name; } \
  {                                    \
    return options_.name = v, *this;   \
  }                                    \
  type name() const                    \
    requires requires(O o) { o.name; } \
  {                                    \
    return options_.name;              \
  }

// Options of an optimiser that are built; lr comes first.
template <class O>
class OptionsOf {
 public:
  OptionsOf(double lr = O().lr) { options_.lr = lr; }  // NOLINT(google-explicit-constructor)
  LAZULI_OPTION(double, lr)
  LAZULI_OPTION(double, lr_decay)
  LAZULI_OPTION(double, alpha)
  LAZULI_OPTION(double, eps)
  LAZULI_OPTION(double, momentum)
  LAZULI_OPTION(double, dampening)
  LAZULI_OPTION(double, weight_decay)
  LAZULI_OPTION(double, initial_accumulator_value)
  LAZULI_OPTION(bool, nesterov)
  LAZULI_OPTION(bool, amsgrad)
  LAZULI_OPTION(bool, centered)
  OptionsOf& betas(std::tuple<double, double> v)
    requires requires(O o) { o.betas; }
  {
    return options_.betas = {std::get<0>(v), std::get<1>(v)}, *this;
  }
  std::tuple<double, double> betas() const
    requires requires(O o) { o.betas; }
  {
    return options_.betas;
  }
  const O& get() const { return options_; }

 private:
  O options_;
};
#undef LAZULI_OPTION
using SGDOptions = OptionsOf<lazuli::optim::SGDOptions>;
using AdamOptions = OptionsOf<lazuli::optim::AdamOptions>;
using AdamWOptions = OptionsOf<lazuli::optim::AdamWOptions>;
using RMSpropOptions = OptionsOf<lazuli::optim::RMSpropOptions>;
using AdagradOptions = OptionsOf<lazuli::optim::AdagradOptions>;

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
