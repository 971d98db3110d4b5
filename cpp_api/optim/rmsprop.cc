#include <utility>
#include <vector>

#include "cpp_api/optim/options.h"
#include "lazuli/optim.h"

namespace lazuli::optim {

RMSprop::RMSprop(std::vector<Tensor> parameters, const RMSpropOptions& options, SourceLocation loc)
    : Configured(std::move(parameters), options, "RMSprop", {"mean_square", "mean", "momentum"},
                 loc) {
  CheckOptions(loc);
}

std::vector<Optimizer::Option> RMSprop::Options() {
  return {{"lr", &options_.lr},
          {"alpha", &options_.alpha},
          {"eps", &options_.eps},
          {"weight_decay", &options_.weight_decay},
          {"momentum", &options_.momentum},
          {"centered", &options_.centered}};
}

void RMSprop::CheckOptions(SourceLocation loc) const {
  CheckAtLeastZero("RMSprop", "lr", options_.lr, loc);
  CheckFraction("RMSprop", "alpha", options_.alpha, loc);
  CheckAtLeastZero("RMSprop", "eps", options_.eps, loc);
  CheckAtLeastZero("RMSprop", "weight_decay", options_.weight_decay, loc);
  CheckAtLeastZero("RMSprop", "momentum", options_.momentum, loc);
}

void RMSprop::Update(Group& group) {
  const RMSpropOptions& o = options_;
  RmspropStep step{.lr = o.lr, .alpha = o.alpha, .share = 1 - o.alpha, .eps = o.eps};
  if (o.momentum != 0) step.momentum = o.momentum;
  if (o.weight_decay != 0) step.weight_decay = o.weight_decay;
  Fill(group, 0);
  if (o.centered) Fill(group, 1);
  if (o.momentum != 0) Fill(group, 2);
  foreach_rmsprop_(group.parameters, group.gradients, group.states[0],
                   o.centered ? group.states[1] : kNoTensors, group.states[2], step);
}

}  // namespace lazuli::optim
