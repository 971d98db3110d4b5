#include "cpp_api/optim/options.h"

namespace lazuli::optim {

const Algorithm& AlgorithmOf(const RMSpropOptions&) {
  static const Algorithm algorithm{
      "RMSprop", {"step"}, {"square_avg", "grad_avg", "momentum_buffer"}};
  return algorithm;
}

void Check(const RMSpropOptions& o, SourceLocation loc) {
  CheckAtLeastZero("RMSprop", "lr", o.lr, loc);
  CheckAtLeastZero("RMSprop", "alpha", o.alpha, loc);
  CheckAtLeastZero("RMSprop", "eps", o.eps, loc);
  CheckAtLeastZero("RMSprop", "weight_decay", o.weight_decay, loc);
  CheckAtLeastZero("RMSprop", "momentum", o.momentum, loc);
}

void Update(Batch& batch, const RMSpropOptions& o) {
  batch.numbers[0] += 1;
  RmspropStep step{.lr = o.lr, .alpha = o.alpha, .share = 1 - o.alpha, .eps = o.eps};
  if (o.momentum != 0) step.momentum = o.momentum;
  if (o.weight_decay != 0) step.weight_decay = o.weight_decay;
  step.maximize = o.maximize;
  Fill(batch, 0);
  if (o.centered) Fill(batch, 1);
  if (o.momentum != 0) Fill(batch, 2);
  foreach_rmsprop_(batch.parameters, batch.gradients, batch.states[0],
                   o.centered ? batch.states[1] : kNoTensors, batch.states[2], step);
}

}  // namespace lazuli::optim
