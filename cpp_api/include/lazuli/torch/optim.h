// Optimisers in LibTorch's words: SGD(net->parameters(), SGDOptions(0.01).momentum(0.5)).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lazuli/lr_scheduler.h"
#include "lazuli/optim.h"
#include "lazuli/torch/serialize.h"
#include "lazuli/torch/tensor.h"

namespace lazuli::torch_names {
namespace optim {

// By name: what is declared below hides them, in programs that say `using namespace torch::optim`,
// too.
using lazuli::optim::Configured;
using lazuli::optim::LRScheduler;
using lazuli::optim::Optimizer;
using lazuli::optim::OptimizerOptions;
using lazuli::optim::OptionsOf;
using lazuli::optim::ParamGroup;

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
using MuonOptions = OptionsOf<lazuli::optim::MuonOptions>;
using LBFGSOptions = OptionsOf<lazuli::optim::LBFGSOptions>;
using OptimizerParamGroup = ParamGroup;

// What an optimiser keeps of a parameter, as it is now: read, not written. Tensors that it does not have
// are undefined, counts that it does not have 0.
class OptimizerParamState {
 public:
  OptimizerParamState(std::unordered_map<std::string, Tensor> tensors, std::int64_t step)
      : tensors_(std::move(tensors)), step_(step) {}
  Tensor get(const std::string& name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? Tensor() : found->second;
  }
  std::int64_t step() const { return step_; }
  Tensor momentum_buffer() const { return get("momentum_buffer"); }
  Tensor exp_avg() const { return get("exp_avg"); }
  Tensor exp_avg_sq() const { return get("exp_avg_sq"); }
  Tensor max_exp_avg_sq() const { return get("max_exp_avg_sq"); }
  Tensor square_avg() const { return get("square_avg"); }
  Tensor grad_avg() const { return get("grad_avg"); }
  Tensor sum() const { return get("sum"); }

 private:
  std::unordered_map<std::string, Tensor> tensors_;
  std::int64_t step_;
};
using SGDParamState = OptimizerParamState;
using AdamParamState = OptimizerParamState;
using AdamWParamState = OptimizerParamState;
using RMSpropParamState = OptimizerParamState;
using AdagradParamState = OptimizerParamState;

// The optimiser with such options.
template <class Optimizer, class Options>
class Named : public Optimizer {
 public:
  explicit Named(std::vector<Tensor> parameters, const Options& defaults = {}, LAZULI_LOC)
      : Optimizer(std::move(parameters), defaults.get(), loc) {}
  explicit Named(std::vector<OptimizerParamGroup> groups, const Options& defaults = {}, LAZULI_LOC)
      : Optimizer(std::move(groups), defaults.get(), loc) {}
  void save(serialize::OutputArchive& archive, LAZULI_LOC) const {
    archive.write(this->state_dict(), loc);
  }
  void load(serialize::InputArchive& archive, LAZULI_LOC) {
    this->load_state_dict(archive.state(), loc);
  }
  std::size_t size() const { return this->parameters().size(); }
  // Of the parameters that were updated, by p.unsafeGetTensorImpl().
  std::unordered_map<const void*, std::unique_ptr<OptimizerParamState>> state() const {
    const StateDict kept = this->state_dict();
    std::unordered_map<const void*, std::unique_ptr<OptimizerParamState>> all;
    for (std::size_t i = 0; i < size(); ++i) {
      const std::string prefix = std::to_string(i) + ".";
      std::unordered_map<std::string, Tensor> tensors;
      for (const auto& [name, tensor] : kept.tensors) {
        if (name.starts_with(prefix)) tensors.emplace(name.substr(prefix.size()), tensor);
      }
      const auto step = kept.metadata.find(prefix + "step");
      if (tensors.empty() && step == kept.metadata.end()) continue;
      const double steps = step == kept.metadata.end() ? 0 : std::stod(step->second);
      all.emplace(this->parameters()[i].unsafeGetTensorImpl(),
                  std::make_unique<OptimizerParamState>(std::move(tensors),
                                                        static_cast<std::int64_t>(steps)));
    }
    return all;
  }
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
using Muon = Named<lazuli::optim::Muon, MuonOptions>;
using LBFGS = Named<lazuli::optim::LBFGS, LBFGSOptions>;

// --- schedules: made of numbers in a row, kept up by step()
class StepLR {
 public:
  StepLR(Optimizer& optimizer, unsigned step_size, double gamma = 0.1, LAZULI_LOC)
      : schedule_(optimizer, {.step_size = step_size, .gamma = gamma}, loc) {}
  void step() { schedule_.step(); }

 private:
  lazuli::optim::StepLR schedule_;
};
class ReduceLROnPlateauScheduler {
 public:
  enum SchedulerMode : std::uint8_t { min, max };
  enum ThresholdMode : std::uint8_t { rel, abs };
  explicit ReduceLROnPlateauScheduler(Optimizer& optimizer, SchedulerMode mode = min,
                                      float factor = 0.1f, int patience = 10,
                                      double threshold = 1e-4, ThresholdMode threshold_mode = rel,
                                      int cooldown = 0, const std::vector<float>& min_lr = {},
                                      double eps = 1e-8, bool /*verbose*/ = false, LAZULI_LOC)
      : schedule_(optimizer,
                  {.maximize = mode == max,
                   .factor = factor,
                   .patience = patience,
                   .threshold = threshold,
                   .relative = threshold_mode == rel,
                   .cooldown = cooldown,
                   .min_lr = min_lr.empty() ? 0.0 : min_lr[0],
                   .eps = eps},
                  loc) {}
  void step(float metric) { schedule_.step(metric); }

 private:
  lazuli::optim::ReduceLROnPlateau schedule_;
};

}  // namespace optim

template <std::derived_from<optim::Optimizer> O>
struct Saving<O> {
  static StateDict State(const O& optimizer) { return optimizer.state_dict(); }
  static void Set(O& optimizer, const StateDict& state, const std::string&, SourceLocation loc) {
    optimizer.load_state_dict(state, loc);
  }
};

}  // namespace lazuli::torch_names
