#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cpp_api/optim/options.h"
#include "lazuli/autograd.h"
#include "lazuli/execution.h"
#include "lazuli/internal/fail.h"
#include "lazuli/optim.h"

namespace lazuli::optim {
namespace {

void CheckBeta(const char* name, double beta, SourceLocation loc) {
  if (beta >= 0 && beta < 1) return;
  lazuli::internal::Fail(ErrorCode::kInvalidArgument,
                         std::string("Adam: ") + name + " is " + NumberText(beta) +
                             ", it must be at least 0 and below 1",
                         loc);
}

void Check(const AdamOptions& o, SourceLocation loc) {
  CheckAtLeastZero("Adam", "lr", o.lr, loc);
  CheckBeta("betas.first", o.betas.first, loc);
  CheckBeta("betas.second", o.betas.second, loc);
  CheckAtLeastZero("Adam", "eps", o.eps, loc);
  CheckAtLeastZero("Adam", "weight_decay", o.weight_decay, loc);
}

// What depends on how many steps a parameter has made: the same numbers for all that made as many.
struct Corrections {
  Corrections(const AdamOptions& o, std::int64_t steps)
      : minus_step_size(-o.lr / (1 - std::pow(o.betas.first, steps))),
        root(std::sqrt(1 - std::pow(o.betas.second, steps))) {}
  Scalar minus_step_size, root;
};

}  // namespace

Adam::Adam(std::vector<Tensor> parameters, const AdamOptions& options, SourceLocation loc)
    : Optimizer(std::move(parameters), "Adam", loc),
      options_(options),
      moments_(this->parameters().size()) {
  Check(options_, loc);
}

void Adam::set_lr(double lr, SourceLocation loc) {
  AdamOptions options = options_;
  options.lr = lr;
  set_options(options, loc);
}

void Adam::set_options(const AdamOptions& options, SourceLocation loc) {
  Check(options, loc);
  options_ = options;
}

void Adam::step(SourceLocation loc) {
  const SiteScope site(loc);
  const NoGrad no_grad;
  const Scalar weight_decay(options_.weight_decay), eps(options_.eps);
  const Scalar beta2(options_.betas.second);
  const Scalar new_share1(1 - options_.betas.first), new_share2(1 - options_.betas.second);
  std::map<std::int64_t, Corrections> corrections;
  for (std::size_t i = 0; i < parameters().size(); ++i) {
    Tensor p = parameters()[i];
    Tensor grad = p.grad();
    if (!grad.defined()) continue;
    if (options_.weight_decay != 0) grad = grad + p * weight_decay;

    auto& [steps, mean, mean_square] = moments_[i];
    if (steps++ == 0) {
      mean = zeros_like(p);
      mean_square = zeros_like(p);
      NameState(mean, p, "mean");
      NameState(mean_square, p, "mean_square");
    }
    const Corrections& c = corrections.try_emplace(steps, options_, steps).first->second;
    mean.add_(grad - mean, new_share1);
    mean_square.mul_(beta2).add_(grad * new_share2 * grad);
    p.add_(mean * c.minus_step_size / (sqrt(mean_square) / c.root + eps));
  }
}

}  // namespace lazuli::optim
