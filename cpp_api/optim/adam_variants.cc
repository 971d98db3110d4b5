// NAdam, RAdam, Adamax and Lion: means of gradients with other denominators than Adam's.
#include <cmath>

#include "cpp_api/optim/options.h"

namespace lazuli::optim {
namespace {

template <class O>
void CheckVariant(const char* name, const O& o, SourceLocation loc) {
  CheckAtLeastZero(name, "lr", o.lr, loc);
  CheckBetas(name, o.betas, loc);
  if constexpr (requires { o.eps; }) CheckAtLeastZero(name, "eps", o.eps, loc);
  if constexpr (requires { o.momentum_decay; })
    CheckAtLeastZero(name, "momentum_decay", o.momentum_decay, loc);
  CheckAtLeastZero(name, "weight_decay", o.weight_decay, loc);
}

}  // namespace

const Algorithm& AlgorithmOf(const NAdamOptions&) {
  static const Algorithm algorithm{"NAdam", {"step", "mu_product"}, {"exp_avg", "exp_avg_sq"}};
  return algorithm;
}
void Check(const NAdamOptions& o, SourceLocation loc) { CheckVariant("NAdam", o, loc); }
void Update(Batch& batch, const NAdamOptions& o) {
  const bool first = batch.numbers[0] == 0;
  const double steps = batch.numbers[0] += 1;
  const auto [beta1, beta2] = o.betas;
  const auto mu_at = [&](double t) {
    return beta1 * (1 - 0.5 * std::pow(0.96, t * o.momentum_decay));
  };
  const double mu = mu_at(steps), next = mu_at(steps + 1);
  // A float in PyTorch's state.
  const double product = static_cast<float>((first ? 1 : batch.numbers[1]) * mu);
  batch.numbers[1] = product;
  UpdateStep step{.rule = UpdateRule::kNadam,
                  .numbers = {o.eps, beta2, 1 - beta1, 1 - beta2, 1 - std::pow(beta2, steps),
                              o.lr * (1 - mu) / (1 - product), o.lr * next / (1 - product * next)}};
  SetDecay(step, o, o.decoupled_weight_decay);
  step.maximize = o.maximize;
  Fill(batch, 0);
  Fill(batch, 1);
  foreach_update_(batch.parameters, batch.gradients, batch.states, step);
}

const Algorithm& AlgorithmOf(const RAdamOptions&) {
  static const Algorithm algorithm{"RAdam", {"step"}, {"exp_avg", "exp_avg_sq"}};
  return algorithm;
}
void Check(const RAdamOptions& o, SourceLocation loc) { CheckVariant("RAdam", o, loc); }
void Update(Batch& batch, const RAdamOptions& o) {
  const double steps = batch.numbers[0] += 1;
  const auto [beta1, beta2] = o.betas;
  const double correction1 = 1 - std::pow(beta1, steps), correction2 = 1 - std::pow(beta2, steps);
  const double longest = 2 / (1 - beta2) - 1;  // of the approximated moving average
  const double length = longest - 2 * steps * std::pow(beta2, steps) / correction2;
  UpdateStep step{};
  if (length > 5) {
    const double rectified =
        std::sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length));
    step.rule = UpdateRule::kRadam;
    step.numbers = {
        o.eps, beta2, 1 - beta1, 1 - beta2, correction1, o.lr, std::sqrt(correction2) * rectified};
  } else {
    step.rule = UpdateRule::kRadamPlain;
    step.numbers = {beta2, 1 - beta1, 1 - beta2, correction1, o.lr};
  }
  SetDecay(step, o, o.decoupled_weight_decay);
  step.maximize = o.maximize;
  Fill(batch, 0);
  Fill(batch, 1);
  foreach_update_(batch.parameters, batch.gradients, batch.states, step);
}

const Algorithm& AlgorithmOf(const AdamaxOptions&) {
  static const Algorithm algorithm{"Adamax", {"step"}, {"exp_avg", "exp_inf"}};
  return algorithm;
}
void Check(const AdamaxOptions& o, SourceLocation loc) { CheckVariant("Adamax", o, loc); }
void Update(Batch& batch, const AdamaxOptions& o) {
  const double steps = batch.numbers[0] += 1;
  UpdateStep step{.rule = UpdateRule::kAdamax,
                  .numbers = {o.eps, o.betas.second, 1 - o.betas.first,
                              o.lr / (1 - std::pow(o.betas.first, steps))}};
  SetDecay(step, o, /*decoupled=*/false);
  step.maximize = o.maximize;
  Fill(batch, 0);
  Fill(batch, 1);
  foreach_update_(batch.parameters, batch.gradients, batch.states, step);
}

const Algorithm& AlgorithmOf(const LionOptions&) {
  static const Algorithm algorithm{"Lion", {}, {"exp_avg"}};
  return algorithm;
}
void Check(const LionOptions& o, SourceLocation loc) { CheckVariant("Lion", o, loc); }
void Update(Batch& batch, const LionOptions& o) {
  const auto [beta1, beta2] = o.betas;
  UpdateStep step{.rule = UpdateRule::kLion, .numbers = {o.lr, beta1, 1 - beta1, 1 - beta2}};
  SetDecay(step, o, /*decoupled=*/true);
  step.maximize = o.maximize;
  Fill(batch, 0);
  foreach_update_(batch.parameters, batch.gradients, batch.states, step);
}

}  // namespace lazuli::optim
