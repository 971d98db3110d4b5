#include <cmath>
#include <utility>
#include <vector>

#include "cpp_api/optim/options.h"
#include "lazuli/optim.h"

namespace lazuli::optim {

Adam::Adam(std::vector<Tensor> parameters, const AdamOptions& options, const char* name,
           bool decoupled, SourceLocation loc)
    : Configured(std::move(parameters), options, name, {"mean", "mean_square", "max_square"}, loc),
      optimizer_(name),
      decoupled_(decoupled) {
  CheckOptions(loc);
}

std::vector<Optimizer::Option> Adam::Options() {
  return {{"lr", &options_.lr},
          {"betas.first", &options_.betas.first},
          {"betas.second", &options_.betas.second},
          {"eps", &options_.eps},
          {"weight_decay", &options_.weight_decay},
          {"amsgrad", &options_.amsgrad}};
}

void Adam::CheckOptions(SourceLocation loc) const {
  CheckAtLeastZero(optimizer_, "lr", options_.lr, loc);
  CheckFraction(optimizer_, "betas.first", options_.betas.first, loc);
  CheckFraction(optimizer_, "betas.second", options_.betas.second, loc);
  CheckAtLeastZero(optimizer_, "eps", options_.eps, loc);
  CheckAtLeastZero(optimizer_, "weight_decay", options_.weight_decay, loc);
}

void Adam::Update(Group& group) {
  const AdamOptions& o = options_;
  const auto steps = static_cast<double>(group.steps);
  AdamStep step{.step_size = o.lr / (1 - std::pow(o.betas.first, steps)),
                .root = std::sqrt(1 - std::pow(o.betas.second, steps)),
                .eps = o.eps,
                .beta2 = o.betas.second,
                .share1 = 1 - o.betas.first,
                .share2 = 1 - o.betas.second};
  if (o.weight_decay != 0 && decoupled_) step.shrink = 1 - o.lr * o.weight_decay;
  if (o.weight_decay != 0 && !decoupled_) step.weight_decay = o.weight_decay;
  Fill(group, 0);
  Fill(group, 1);
  if (o.amsgrad) Fill(group, 2);
  foreach_adam_(group.parameters, group.gradients, group.states[0], group.states[1],
                o.amsgrad ? group.states[2] : kNoTensors, step);
}

}  // namespace lazuli::optim
