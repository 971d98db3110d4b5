// Gradient mode. tensor.h has backward(), grad() and set_requires_grad().
#pragma once

#include <functional>
#include <vector>

#include "lazuli/tensor.h"

namespace lazuli {

LAZULI_API bool grad_enabled();

// While alive, ops of this thread record no history.
class LAZULI_API NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool saved_;
};

// Gradients of a scalar function at these inputs by central differences, compared with backward():
// the largest difference relative to max(1, |numeric|). Inputs should be f64 for a meaningful
// bound. `eps` is the step.
LAZULI_API double gradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                            const std::vector<Tensor>& inputs, double eps = 1e-6,
                            SourceLocation loc = SourceLocation::current());

}  // namespace lazuli
