#include <cmath>

#include "cpp_api/optim/options.h"

namespace lazuli::optim {
namespace {

template <class O>
void UpdateAdam(Batch& batch, const O& o, bool decoupled) {
  const double steps = batch.numbers[0] += 1;
  AdamStep step{.step_size = o.lr / (1 - std::pow(o.betas.first, steps)),
                .root = std::sqrt(1 - std::pow(o.betas.second, steps)),
                .eps = o.eps,
                .beta2 = o.betas.second,
                .share1 = 1 - o.betas.first,
                .share2 = 1 - o.betas.second};
  if (o.weight_decay != 0 && decoupled) step.shrink = 1 - o.lr * o.weight_decay;
  if (o.weight_decay != 0 && !decoupled) step.weight_decay = o.weight_decay;
  step.maximize = o.maximize;
  Fill(batch, 0);
  Fill(batch, 1);
  if (o.amsgrad) Fill(batch, 2);
  foreach_adam_(batch.parameters, batch.gradients, batch.states[0], batch.states[1],
                o.amsgrad ? batch.states[2] : kNoTensors, step);
}

template <class O>
void CheckAdam(const char* name, const O& o, SourceLocation loc) {
  CheckAtLeastZero(name, "lr", o.lr, loc);
  CheckBetas(name, o.betas, loc);
  CheckAtLeastZero(name, "eps", o.eps, loc);
  CheckAtLeastZero(name, "weight_decay", o.weight_decay, loc);
}

}  // namespace

const Algorithm& AlgorithmOf(const AdamOptions&) {
  static const Algorithm algorithm{"Adam", {"step"}, {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}};
  return algorithm;
}
void Check(const AdamOptions& o, SourceLocation loc) { CheckAdam("Adam", o, loc); }
void Update(Batch& batch, const AdamOptions& o) { UpdateAdam(batch, o, o.decoupled_weight_decay); }

const Algorithm& AlgorithmOf(const AdamWOptions&) {
  static const Algorithm algorithm{"AdamW", {"step"}, {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}};
  return algorithm;
}
void Check(const AdamWOptions& o, SourceLocation loc) { CheckAdam("AdamW", o, loc); }
void Update(Batch& batch, const AdamWOptions& o) { UpdateAdam(batch, o, /*decoupled=*/true); }

}  // namespace lazuli::optim
