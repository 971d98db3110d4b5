// Gradient mode. tensor.h has backward(), grad() and set_requires_grad().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
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

// What register_hook() gives.
class LAZULI_API HookHandle {
 public:
  HookHandle() = default;
  void remove();  // gradients pass by again; nothing if that is so already

 private:
  friend class Tensor;
  HookHandle(std::weak_ptr<void> hooks, std::uint64_t id) : hooks_(std::move(hooks)), id_(id) {}
  std::weak_ptr<void> hooks_;
  std::uint64_t id_ = 0;
};

// The gradients of the outputs with respect to the inputs, which may be leaves or results of ops;
// .grad stays as it is. `gradients` are those of the outputs: none, or one each, of which those of
// scalars may be undefined.
struct GradOptions {
  // Keeps what the forward pass saved; create_graph does, too, and records the gradients' own
  // history.
  bool retain_graph = false;
  bool create_graph = false;
  bool allow_unused = false;  // an input the outputs do not depend on is no error: undefined
};
LAZULI_API std::vector<Tensor> grad(const std::vector<Tensor>& outputs,
                                    const std::vector<Tensor>& inputs,
                                    const std::vector<Tensor>& gradients = {},
                                    const GradOptions& options = {}, LAZULI_LOC);
// Tensor::backward() of several outputs at once.
LAZULI_API void backward(const std::vector<Tensor>& outputs,
                         const std::vector<Tensor>& gradients = {},
                         Tensor::BackwardOptions options = {}, LAZULI_LOC);

// Gradients of a scalar function at these inputs by central differences, compared with backward():
// the largest difference relative to max(1, |numeric|). Inputs should be f64 for a meaningful
// bound. `eps` is the step.
LAZULI_API double gradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                            const std::vector<Tensor>& inputs, double eps = 1e-6,
                            SourceLocation loc = SourceLocation::current());

}  // namespace lazuli
