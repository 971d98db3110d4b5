// Averages of a model's parameters as training goes on: over its steps (SWA, Izmailov et al., 2018), or
// decaying (EMA).
//
//   lazuli::optim::AveragedModel<Net> average(net, {.decay = 0.999});
//   for (...) {
//     opt.step();
//     average.update_parameters(net);
//   }
//   average(x);  // by the averaged parameters
//
// SWALR (lr_scheduler.h) is a schedule for it.
#pragma once

#include <concepts>
#include <optional>
#include <utility>

#include "lazuli/autograd.h"
#include "lazuli/nn/module.h"
#include "lazuli/ops.h"

namespace lazuli::optim {

struct AveragedModelOptions {
  std::optional<double> decay =
      {};                    // in [0, 1], how much of the average stays; none: the mean of all
  bool use_buffers = false;  // buffers are averaged, too; else they are the model's newest
};

// Takes the parameters of a model into the averages, of which there are `count` so far; the first
// time they become them. Throws Error(kInvalidArgument) for modules that differ in their parameters,
// and for a decay out of range.
LAZULI_API void update_averages(nn::Module& averages, const nn::Module& model, std::int64_t count,
                                const AveragedModelOptions& options, LAZULI_LOC);

// A copy of a model, made by nn::clone(), whose parameters are averages of those of the model, from
// which update_parameters() takes them.
template <std::derived_from<nn::Module> M>
class AveragedModel : public nn::Module {
 public:
  explicit AveragedModel(const M& model, const AveragedModelOptions& options = {}, LAZULI_LOC)
      : module(nn::clone(model, loc)), options_(options) {
    register_module("module", module, loc);
    n_averaged = register_buffer("n_averaged", zeros({}, kInt64, Device(), loc), loc);
  }
  void update_parameters(const M& model, LAZULI_LOC) {
    update_averages(module, model, n_averaged.item<std::int64_t>(loc), options_, loc);
    const NoGrad no_grad;
    n_averaged.add_(Operand(1, loc));
  }
  template <class... A>
  auto operator()(A&&... arguments) const {
    return module(std::forward<A>(arguments)...);
  }

  M module;
  nn::Parameter n_averaged;  // a buffer

 private:
  AveragedModelOptions options_;
};

}  // namespace lazuli::optim
