// Updates of many tensors at once, in place: each call records one node, however many tensors there
// are. Optimisers (optim.h) and gradient clipping (nn.h) are written with these, and so can others
// be.
//
// Lists have one entry a parameter: gradients and states have the shape of their parameter, and all
// tensors of a call one dtype and device. Nothing here has a gradient. The arithmetic is PyTorch's.
// Numbers that change from step to step are Scalars: one of the program, whatever the number of
// tensors; an absent one turns its term off.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lazuli/ops.h"
#include "lazuli/tensor.h"

namespace lazuli {

using TensorList = std::vector<Tensor>;

// Updates that happen together: what this thread's foreach_*_ calls compute while one lives becomes
// the tensors' elements by commit(), all at once, which cannot fail. Without it nothing changes:
// one that is refused leaves nothing half updated.
class LAZULI_API ForeachTransaction {
 public:
  ForeachTransaction();
  ~ForeachTransaction();
  ForeachTransaction(const ForeachTransaction&) = delete;
  ForeachTransaction& operator=(const ForeachTransaction&) = delete;
  void commit();  // once; an Error where another context, whose tensor is a view, cannot sync

 private:
  class Deferred;
  std::unique_ptr<Deferred> deferred_;
};

// parameter -= lr * v, with v = momentum * v + undamped * gradient. Undefined momenta are made, and
// start as the gradient; without momentum, `momenta` is not touched.
struct SgdStep {
  Scalar lr;
  std::optional<Scalar> weight_decay = {}, momentum = {}, undamped = {};
  bool nesterov = false;
  bool maximize = false;  // here and below: the gradient is that of what shall grow
};
LAZULI_API void foreach_sgd_(const TensorList& parameters, const TensorList& gradients,
                             TensorList& momenta, const SgdStep& step, LAZULI_LOC);

// parameter -= step_size * mean / (sqrt(square) / root + eps); the mean and the square move toward
// the gradient and its square by `share1` and `share2`.
struct AdamStep {
  Scalar step_size, root, eps, beta2, share1, share2;
  std::optional<Scalar> weight_decay = {};  // adds weight_decay * parameter to the gradient
  std::optional<Scalar> shrink = {};        // multiplies the parameter first (AdamW)
  bool maximize = false;
};
// `maxima` of the squares (AMSGrad) may be empty.
LAZULI_API void foreach_adam_(const TensorList& parameters, const TensorList& gradients,
                              const TensorList& means, const TensorList& squares,
                              const TensorList& maxima, const AdamStep& step, LAZULI_LOC);

// parameter -= lr * gradient / (sqrt(square) + eps), or by a momentum of that. `means` (centered)
// and `momenta` may be empty.
struct RmspropStep {
  Scalar lr, alpha, share, eps;  // share = 1 - alpha
  std::optional<Scalar> momentum = {}, weight_decay = {};
  bool maximize = false;
};
LAZULI_API void foreach_rmsprop_(const TensorList& parameters, const TensorList& gradients,
                                 const TensorList& squares, const TensorList& means,
                                 const TensorList& momenta, const RmspropStep& step, LAZULI_LOC);

// parameter -= lr * gradient / (sqrt(sum of squares) + eps).
struct AdagradStep {
  Scalar lr, eps;
  std::optional<Scalar> weight_decay = {};
  bool maximize = false;
};
LAZULI_API void foreach_adagrad_(const TensorList& parameters, const TensorList& gradients,
                                 const TensorList& sums, const AdagradStep& step, LAZULI_LOC);

// The other algorithms of optim.h. What a rule's numbers and states are: lazy/ops/optim/update_rules.cc.
enum class UpdateRule : std::uint8_t {
  kNadam,
  kRadam,       // with the variance rectified
  kRadamPlain,  // of the first steps, which use none
  kAdamax,
  kAdadelta,
  kAsgd,
  kRprop,
  kLion,
  kAdafactor,        // a variance for each element
  kAdafactorMatrix,  // one for each row and each column of the last two dims
};
struct UpdateStep {
  UpdateRule rule;
  std::vector<Scalar> numbers;
  std::optional<Scalar> weight_decay = {};  // adds weight_decay * parameter to the gradient
  std::optional<Scalar> shrink = {};        // multiplies the parameter first
  bool maximize = false;
};
// Throws Error(kInvalidArgument) for other numbers or states than the rule's.
LAZULI_API void foreach_update_(const TensorList& parameters, const TensorList& gradients,
                                const std::vector<TensorList>& states, const UpdateStep& step,
                                LAZULI_LOC);

// Scales the tensors so that the norm of all their elements is at most `max_norm`, and returns the
// norm before. `order` is 1, 2, ... or infinity: the largest absolute value.
LAZULI_API Tensor foreach_clip_norm_(const TensorList& tensors, const Scalar& max_norm,
                                     double order = 2, LAZULI_LOC);

}  // namespace lazuli
