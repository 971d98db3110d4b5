#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "cpp_api/optim/options.h"
#include "lazuli/autograd.h"
#include "lazuli/execution.h"
#include "lazuli/internal/fail.h"
#include "lazuli/optim.h"

namespace lazuli::optim {
namespace {

void Check(const SGDOptions& o, SourceLocation loc) {
  CheckAtLeastZero("SGD", "lr", o.lr, loc);
  CheckAtLeastZero("SGD", "momentum", o.momentum, loc);
  CheckAtLeastZero("SGD", "weight_decay", o.weight_decay, loc);
  if (o.nesterov && (o.momentum == 0 || o.dampening != 0)) {
    lazuli::internal::Fail(ErrorCode::kInvalidArgument,
                           "SGD: nesterov needs a momentum above 0 and a dampening of 0, but "
                           "momentum is " +
                               NumberText(o.momentum) + " and dampening is " +
                               NumberText(o.dampening),
                           loc);
  }
}

}  // namespace

SGD::SGD(std::vector<Tensor> parameters, const SGDOptions& options, SourceLocation loc)
    : Optimizer(std::move(parameters), "SGD", loc),
      options_(options),
      momentum_(this->parameters().size()) {
  Check(options_, loc);
}

void SGD::set_lr(double lr, SourceLocation loc) {
  SGDOptions options = options_;
  options.lr = lr;
  set_options(options, loc);
}

void SGD::set_options(const SGDOptions& options, SourceLocation loc) {
  Check(options, loc);
  options_ = options;
}

void SGD::step(SourceLocation loc) {
  const SiteScope site(loc);
  const NoGrad no_grad;
  const Scalar minus_lr(-options_.lr), weight_decay(options_.weight_decay);
  const Scalar momentum(options_.momentum), undamped(1 - options_.dampening);
  for (std::size_t i = 0; i < parameters().size(); ++i) {
    Tensor p = parameters()[i];
    Tensor move = p.grad();
    if (!move.defined()) continue;
    if (options_.weight_decay != 0) move = move + p * weight_decay;
    if (options_.momentum != 0) {
      Tensor& v = momentum_[i];
      if (!v.defined()) {
        v = move.detach().clone();
        NameState(v, p, "momentum");
      } else {
        v.mul_(momentum);
        options_.dampening == 0 ? v.add_(move) : v.add_(move, undamped);
      }
      move = options_.nesterov ? move + v * momentum : v;
    }
    p.add_(move, minus_lr);
  }
}

}  // namespace lazuli::optim
