#include <utility>
#include <vector>

#include "cpp_api/optim/options.h"
#include "lazuli/optim.h"

namespace lazuli::optim {

Adagrad::Adagrad(std::vector<Tensor> parameters, const AdagradOptions& options, SourceLocation loc)
    : Configured(std::move(parameters), options, "Adagrad", {"sum"}, loc) {
  CheckOptions(loc);
}

std::vector<Optimizer::Option> Adagrad::Options() {
  return {{"lr", &options_.lr},
          {"lr_decay", &options_.lr_decay},
          {"weight_decay", &options_.weight_decay},
          {"initial_accumulator_value", &options_.initial_accumulator_value},
          {"eps", &options_.eps}};
}

void Adagrad::CheckOptions(SourceLocation loc) const {
  // All of them.
  for (const auto& [name, value] :
       {std::pair{"lr", options_.lr},
        {"lr_decay", options_.lr_decay},
        {"weight_decay", options_.weight_decay},
        {"initial_accumulator_value", options_.initial_accumulator_value},
        {"eps", options_.eps}})
    CheckAtLeastZero("Adagrad", name, value, loc);
}

void Adagrad::Update(Group& group) {
  const AdagradOptions& o = options_;
  AdagradStep step{.lr = o.lr / (1 + static_cast<double>(group.steps - 1) * o.lr_decay),
                   .eps = o.eps};
  if (o.weight_decay != 0) step.weight_decay = o.weight_decay;
  Fill(group, 0, o.initial_accumulator_value);
  foreach_adagrad_(group.parameters, group.gradients, group.states[0], step);
}

}  // namespace lazuli::optim
