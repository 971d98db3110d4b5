#include "cpp_api/optim/options.h"
#include "lazuli/internal/text.h"

namespace lazuli::optim {

const Algorithm& AlgorithmOf(const SGDOptions&) {
  static const Algorithm algorithm{"SGD", {}, {"momentum_buffer"}};
  return algorithm;
}

void Check(const SGDOptions& o, SourceLocation loc) {
  CheckAtLeastZero("SGD", "lr", o.lr, loc);
  CheckAtLeastZero("SGD", "momentum", o.momentum, loc);
  CheckAtLeastZero("SGD", "weight_decay", o.weight_decay, loc);
  if (o.nesterov && (o.momentum == 0 || o.dampening != 0)) {
    using lazuli::internal::NumberText;
    FailOptions("SGD",
                "nesterov needs a momentum above 0 and a dampening of 0, but momentum is " +
                    NumberText(o.momentum) + " and dampening is " + NumberText(o.dampening),
                loc);
  }
}

void Update(Batch& batch, const SGDOptions& o) {
  SgdStep step{.lr = o.lr};
  if (o.weight_decay != 0) step.weight_decay = o.weight_decay;
  if (o.momentum != 0) step.momentum = o.momentum;
  if (o.momentum != 0 && o.dampening != 0) step.undamped = 1 - o.dampening;
  step.nesterov = o.nesterov;
  step.maximize = o.maximize;
  foreach_sgd_(batch.parameters, batch.gradients, batch.states[0], step);
}

}  // namespace lazuli::optim
