#include "cpp_api/optim/options.h"

namespace lazuli::optim {

const Algorithm& AlgorithmOf(const AdagradOptions&) {
  static const Algorithm algorithm{"Adagrad", {"step"}, {"sum"}};
  return algorithm;
}

void Check(const AdagradOptions& o, SourceLocation loc) {
  CheckAtLeastZero("Adagrad", "lr", o.lr, loc);
  CheckAtLeastZero("Adagrad", "lr_decay", o.lr_decay, loc);
  CheckAtLeastZero("Adagrad", "weight_decay", o.weight_decay, loc);
  CheckAtLeastZero("Adagrad", "initial_accumulator_value", o.initial_accumulator_value, loc);
  CheckAtLeastZero("Adagrad", "eps", o.eps, loc);
}

void Update(Batch& batch, const AdagradOptions& o) {
  const double steps = batch.numbers[0] += 1;
  AdagradStep step{.lr = o.lr / (1 + (steps - 1) * o.lr_decay), .eps = o.eps};
  if (o.weight_decay != 0) step.weight_decay = o.weight_decay;
  step.maximize = o.maximize;
  Fill(batch, 0, o.initial_accumulator_value);
  foreach_adagrad_(batch.parameters, batch.gradients, batch.states[0], step);
}

}  // namespace lazuli::optim
