#include <optional>
#include <utility>
#include <vector>

#include "cpp_api/optim/options.h"
#include "lazuli/internal/fail.h"
#include "lazuli/internal/text.h"
#include "lazuli/optim.h"

namespace lazuli::optim {

using lazuli::internal::NumberText;

SGD::SGD(std::vector<Tensor> parameters, const SGDOptions& options, SourceLocation loc)
    : Configured(std::move(parameters), options, "SGD", {"momentum"}, loc) {
  CheckOptions(loc);
}

std::vector<Optimizer::Option> SGD::Options() {
  return {{"lr", &options_.lr},
          {"momentum", &options_.momentum},
          {"dampening", &options_.dampening},
          {"weight_decay", &options_.weight_decay},
          {"nesterov", &options_.nesterov}};
}

void SGD::CheckOptions(SourceLocation loc) const {
  CheckAtLeastZero("SGD", "lr", options_.lr, loc);
  CheckAtLeastZero("SGD", "momentum", options_.momentum, loc);
  CheckAtLeastZero("SGD", "weight_decay", options_.weight_decay, loc);
  if (options_.nesterov && (options_.momentum == 0 || options_.dampening != 0)) {
    lazuli::internal::Fail(ErrorCode::kInvalidArgument,
                           "SGD: nesterov needs a momentum above 0 and a dampening of 0, but "
                           "momentum is " +
                               NumberText(options_.momentum) + " and dampening is " +
                               NumberText(options_.dampening),
                           loc);
  }
}

void SGD::Update(Group& group) {
  SgdStep step{.lr = options_.lr};
  if (options_.weight_decay != 0) step.weight_decay = options_.weight_decay;
  if (options_.momentum != 0) step.momentum = options_.momentum;
  if (options_.momentum != 0 && options_.dampening != 0) step.undamped = 1 - options_.dampening;
  step.nesterov = options_.nesterov;
  foreach_sgd_(group.parameters, group.gradients, group.states[0], step);
}

}  // namespace lazuli::optim
