#include <algorithm>
#include <cmath>

#include "lazuli/autograd.h"
#include "lazuli/execution.h"
#include "lazuli/ops.h"
#include "lazy/tensor/site_scope.h"

namespace lazuli {
namespace {

// f itself, which records lines of its own.
Tensor CallUser(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                const std::vector<Tensor>& inputs) {
  const lazy::SiteOverride none(ir::kNoSite);
  return f(inputs);
}

double ValueAt(const std::function<Tensor(const std::vector<Tensor>&)>& f,
               std::vector<Tensor> inputs, std::size_t which, const std::vector<double>& values) {
  NoGrad no_grad;
  const Tensor& original = inputs[which];
  inputs[which] = tensor(values, original.sizes(), original.device()).to(original.dtype());
  return CallUser(f, inputs).item<double>();
}

}  // namespace

double gradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                 const std::vector<Tensor>& inputs, double eps, SourceLocation loc) {
  SiteScope scope(loc);
  std::vector<Tensor> leaves;
  for (const Tensor& x : inputs)
    leaves.push_back(x.detach().clone().detach().set_requires_grad(true));
  CallUser(f, leaves).backward();
  double worst = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::vector<double> values = inputs[i].to(kFloat64).to_vector<double>();
    std::vector<double> analytic(values.size(), 0.0);
    if (leaves[i].grad().defined()) analytic = leaves[i].grad().to(kFloat64).to_vector<double>();
    for (std::size_t j = 0; j < values.size(); ++j) {
      const double x = values[j];
      values[j] = x + eps;
      const double above = ValueAt(f, inputs, i, values);
      values[j] = x - eps;
      const double below = ValueAt(f, inputs, i, values);
      values[j] = x;
      const double numeric = (above - below) / (2 * eps);
      const double difference = std::abs(numeric - analytic[j]) / std::max(1.0, std::abs(numeric));
      worst = std::isnan(difference) ? difference : std::max(worst, difference);
    }
  }
  return worst;
}

double gradgradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                     const std::vector<Tensor>& inputs, double eps, SourceLocation loc) {
  SiteScope scope(loc);
  std::vector<Tensor> weights;
  for (const Tensor& x : inputs) weights.push_back(randn_like(x));
  const auto slope = [&](const std::vector<Tensor>& given) {
    const EnableGrad on;
    std::vector<Tensor> leaves;  // gradcheck's own have a history already
    for (const Tensor& x : given)
      leaves.push_back(x.requires_grad() ? x : x.detach().clone().detach().set_requires_grad(true));
    const std::vector<Tensor> slopes =
        grad({CallUser(f, leaves)}, leaves, {}, {.create_graph = true, .allow_unused = true});
    Tensor sum = zeros({}, leaves[0].dtype(), leaves[0].device());
    for (std::size_t i = 0; i < slopes.size(); ++i) {
      if (slopes[i].defined()) sum = sum + (slopes[i] * weights[i]).sum();
    }
    return sum;
  };
  return gradcheck(slope, inputs, eps, loc);
}

}  // namespace lazuli
