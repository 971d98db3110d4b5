// Optimisers in LibTorch's words: SGD(net->parameters(), SGDOptions(0.01).momentum(0.5)).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lazuli/optim.h"
#include "lazuli/torch/tensor.h"

namespace lazuli::torch_names {
namespace optim {

using namespace lazuli::optim;

// Options that are built: SGDOptions(0.1).momentum(0.9).
using SGDOptions = OptionsOf<lazuli::optim::SGDOptions>;
using AdamOptions = OptionsOf<lazuli::optim::AdamOptions>;
using AdamWOptions = OptionsOf<lazuli::optim::AdamWOptions>;
using NAdamOptions = OptionsOf<lazuli::optim::NAdamOptions>;
using RAdamOptions = OptionsOf<lazuli::optim::RAdamOptions>;
using AdamaxOptions = OptionsOf<lazuli::optim::AdamaxOptions>;
using RMSpropOptions = OptionsOf<lazuli::optim::RMSpropOptions>;
using AdagradOptions = OptionsOf<lazuli::optim::AdagradOptions>;
using AdadeltaOptions = OptionsOf<lazuli::optim::AdadeltaOptions>;
using ASGDOptions = OptionsOf<lazuli::optim::ASGDOptions>;
using RpropOptions = OptionsOf<lazuli::optim::RpropOptions>;
using LionOptions = OptionsOf<lazuli::optim::LionOptions>;
using AdafactorOptions = OptionsOf<lazuli::optim::AdafactorOptions>;
using OptimizerParamGroup = ParamGroup;

// The optimiser with such options.
template <class Optimizer, class Options>
class Named : public Optimizer {
 public:
  explicit Named(std::vector<Tensor> parameters, const Options& defaults = {}, LAZULI_LOC)
      : Optimizer(std::move(parameters), defaults.get(), loc) {}
  explicit Named(std::vector<OptimizerParamGroup> groups, const Options& defaults = {}, LAZULI_LOC)
      : Optimizer(std::move(groups), defaults.get(), loc) {}
};
using SGD = Named<lazuli::optim::SGD, SGDOptions>;
using Adam = Named<lazuli::optim::Adam, AdamOptions>;
using AdamW = Named<lazuli::optim::AdamW, AdamWOptions>;
using NAdam = Named<lazuli::optim::NAdam, NAdamOptions>;
using RAdam = Named<lazuli::optim::RAdam, RAdamOptions>;
using Adamax = Named<lazuli::optim::Adamax, AdamaxOptions>;
using RMSprop = Named<lazuli::optim::RMSprop, RMSpropOptions>;
using Adagrad = Named<lazuli::optim::Adagrad, AdagradOptions>;
using Adadelta = Named<lazuli::optim::Adadelta, AdadeltaOptions>;
using ASGD = Named<lazuli::optim::ASGD, ASGDOptions>;
using Rprop = Named<lazuli::optim::Rprop, RpropOptions>;
using Lion = Named<lazuli::optim::Lion, LionOptions>;
using Adafactor = Named<lazuli::optim::Adafactor, AdafactorOptions>;

}  // namespace optim

inline void save(const optim::Optimizer& optimizer, const std::string& path, LAZULI_LOC) {
  lazuli::optim::save(optimizer, path, loc);
}
inline void load(optim::Optimizer& optimizer, const std::string& path, LAZULI_LOC) {
  lazuli::optim::load(optimizer, path, loc);
}

}  // namespace lazuli::torch_names
