// Adadelta, ASGD, Rprop and Adafactor: algorithms that find the sizes of their steps.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "cpp_api/optim/options.h"
#include "lazuli/internal/text.h"

namespace lazuli::optim {

using lazuli::internal::NumberText;

const Algorithm& AlgorithmOf(const AdadeltaOptions&) {
  static const Algorithm algorithm{"Adadelta", {"step"}, {"square_avg", "acc_delta"}};
  return algorithm;
}
void Check(const AdadeltaOptions& o, SourceLocation loc) {
  CheckAtLeastZero("Adadelta", "lr", o.lr, loc);
  if (!(o.rho >= 0 && o.rho <= 1)) {
    FailOptions("Adadelta", "rho is " + NumberText(o.rho) + ", it must be at least 0 and at most 1",
                loc);
  }
  CheckAtLeastZero("Adadelta", "eps", o.eps, loc);
  CheckAtLeastZero("Adadelta", "weight_decay", o.weight_decay, loc);
}
void Update(Batch& batch, const AdadeltaOptions& o) {
  batch.numbers[0] += 1;
  UpdateStep step{.rule = UpdateRule::kAdadelta, .numbers = {o.lr, o.rho, 1 - o.rho, o.eps}};
  SetDecay(step, o, /*decoupled=*/false);
  step.maximize = o.maximize;
  Fill(batch, 0);
  Fill(batch, 1);
  foreach_update_(batch.parameters, batch.gradients, batch.states, step);
}

const Algorithm& AlgorithmOf(const ASGDOptions&) {
  static const Algorithm algorithm{"ASGD", {"step", "eta", "mu"}, {"ax"}};
  return algorithm;
}
void Check(const ASGDOptions& o, SourceLocation loc) {
  CheckAtLeastZero("ASGD", "lr", o.lr, loc);
  CheckAtLeastZero("ASGD", "weight_decay", o.weight_decay, loc);
}
void Update(Batch& batch, const ASGDOptions& o) {
  const bool first = batch.numbers[0] == 0;
  const double steps = batch.numbers[0] += 1;
  // The step size and the weight of the next step are made by this one; floats in PyTorch's state.
  const double eta = first ? static_cast<float>(o.lr) : batch.numbers[1];
  const double weight = first ? 1 : batch.numbers[2];
  UpdateStep step{.rule = UpdateRule::kAsgd, .numbers = {eta, 1 - o.lambd * eta, weight}};
  SetDecay(step, o, /*decoupled=*/false);
  step.maximize = o.maximize;
  batch.numbers[1] = static_cast<float>(o.lr / std::pow(1 + o.lambd * o.lr * steps, o.alpha));
  batch.numbers[2] = static_cast<float>(1 / std::max(1.0, steps - o.t0));
  Fill(batch, 0);
  foreach_update_(batch.parameters, batch.gradients, batch.states, step);
}

const Algorithm& AlgorithmOf(const RpropOptions&) {
  static const Algorithm algorithm{"Rprop", {"step"}, {"prev", "step_size"}};
  return algorithm;
}
void Check(const RpropOptions& o, SourceLocation loc) {
  CheckAtLeastZero("Rprop", "lr", o.lr, loc);
  if (!(o.etas.first > 0 && o.etas.first < 1 && o.etas.second > 1)) {
    FailOptions("Rprop",
                "etas are " + NumberText(o.etas.first) + " and " + NumberText(o.etas.second) +
                    ", they must be between 0 and 1, and above 1",
                loc);
  }
}
void Update(Batch& batch, const RpropOptions& o) {
  batch.numbers[0] += 1;
  UpdateStep step{
      .rule = UpdateRule::kRprop,
      .numbers = {o.etas.first, o.etas.second, o.step_sizes.first, o.step_sizes.second}};
  step.maximize = o.maximize;
  Fill(batch, 0);
  Fill(batch, 1, o.lr);
  foreach_update_(batch.parameters, batch.gradients, batch.states, step);
}

const Algorithm& AlgorithmOf(const AdafactorOptions&) {
  static const Algorithm algorithm{
      "Adafactor", {"step"}, {"row_var", "col_var", "variance"}, /*by_rank=*/true};
  return algorithm;
}
void Check(const AdafactorOptions& o, SourceLocation loc) {
  CheckAtLeastZero("Adafactor", "lr", o.lr, loc);
  if (!(o.beta2_decay <= 0)) {
    FailOptions("Adafactor",
                "beta2_decay is " + NumberText(o.beta2_decay) + ", it must be at most 0", loc);
  }
  if (o.eps.first) CheckAtLeastZero("Adafactor", "eps.first", *o.eps.first, loc);
  CheckAtLeastZero("Adafactor", "eps.second", o.eps.second, loc);
  if (!(o.d >= 1))
    FailOptions("Adafactor", "d is " + NumberText(o.d) + ", it must be at least 1", loc);
  CheckAtLeastZero("Adafactor", "weight_decay", o.weight_decay, loc);
}

namespace {

// What is added to 1 and still seen, in a dtype.
double Epsilon(DType dtype) {
  switch (dtype) {
    case kFloat64:
      return std::numeric_limits<double>::epsilon();
    case kFloat16:
      return std::ldexp(1.0, -10);
    case kBFloat16:
      return std::ldexp(1.0, -7);
    default:
      return std::numeric_limits<float>::epsilon();
  }
}

// The variances of rows and columns: `size` of a dim is 1.
void FillVariance(Batch& batch, std::size_t state, std::int64_t dim) {
  if (batch.states[state][0].defined()) return;
  for (std::size_t i = 0; i < batch.parameters.size(); ++i) {
    const Tensor& p = batch.parameters[i];
    Dims dims = p.sizes();
    dims[static_cast<std::size_t>(p.dim() + dim)] = 1;
    batch.states[state][i] = full(dims, 0, p.dtype(), p.device());
  }
}

}  // namespace

void Update(Batch& batch, const AdafactorOptions& o) {
  const double steps = batch.numbers[0] += 1;
  const double eps = o.eps.first.value_or(Epsilon(batch.parameters[0].dtype()));
  const bool matrix = batch.parameters[0].dim() > 1;
  UpdateStep step{.rule = matrix ? UpdateRule::kAdafactorMatrix : UpdateRule::kAdafactor,
                  .numbers = {std::pow(steps, o.beta2_decay), eps * eps, o.eps.second,
                              std::min(o.lr, 1 / std::sqrt(steps)), o.d}};
  if (matrix) step.numbers.emplace_back(eps);
  SetDecay(step, o, /*decoupled=*/true);
  step.maximize = o.maximize;
  if (matrix) {
    FillVariance(batch, 0, -1);
    FillVariance(batch, 1, -2);
    foreach_update_(batch.parameters, batch.gradients, {batch.states[0], batch.states[1]}, step);
  } else {
    Fill(batch, 2);
    foreach_update_(batch.parameters, batch.gradients, {batch.states[2]}, step);
  }
}

}  // namespace lazuli::optim
