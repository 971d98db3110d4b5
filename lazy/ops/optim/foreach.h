// Updates of many tensors by one node: what an optimiser's step or gradient clipping records,
// however many parameters there are.
//
// Operands are the numbers first, each present only if the update uses it, then one list after the
// other. Arithmetic is torch's, in its order of operations, element by element. These ops have no
// gradients. Results have the shapes of what they update, so that recording does not lower them.
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

enum class Decay : uint8_t { kNone, kL2, kDecoupled };

struct ForeachSgdOp {
  bool momentum, dampening, nesterov, weight_decay;
  bool first;             // momentum starts as the gradient
  bool maximize = false;  // the gradient is that of what shall grow
  LAZULI_OP("foreach_sgd", "aten::_foreach_sgd", momentum, dampening, nesterov, weight_decay, first,
            maximize);
  static constexpr bool kResultsFit = true;
  static constexpr OpDoc kDoc{
      "SGD on lists of parameters, gradients and, unless first, momenta; numbers: lr, weight "
      "decay, "
      "momentum, 1 - dampening.",
      {"operands"}};
  bool InferAll(absl::Span<const Value> in, Shapes& out) const;
  PooledVector<lowering::Op> Lower(lowering::Builder& b, absl::Span<const lowering::Op> in) const;
};

struct ForeachAdamOp {
  Decay decay;
  bool amsgrad;
  bool maximize = false;
  LAZULI_OP("foreach_adam", "aten::_foreach_adam", decay, amsgrad, maximize);
  static constexpr bool kResultsFit = true;
  static constexpr OpDoc kDoc{
      "Adam on lists of parameters, gradients, means, mean squares and, for AMSGrad, their maxima; "
      "numbers: step size, root of the second correction, eps, beta2, 1 - beta1, 1 - beta2, weight "
      "decay (decoupled: 1 - lr * weight decay).",
      {"operands"}};
  bool InferAll(absl::Span<const Value> in, Shapes& out) const;
  PooledVector<lowering::Op> Lower(lowering::Builder& b, absl::Span<const lowering::Op> in) const;
};

struct ForeachRmspropOp {
  bool momentum, centered, weight_decay;
  bool maximize = false;
  LAZULI_OP("foreach_rmsprop", "aten::_foreach_rmsprop", momentum, centered, weight_decay,
            maximize);
  static constexpr bool kResultsFit = true;
  static constexpr OpDoc kDoc{
      "RMSprop on lists of parameters, gradients, mean squares, means if centered and momenta if "
      "any; numbers: lr, alpha, 1 - alpha, eps, momentum, weight decay.",
      {"operands"}};
  bool InferAll(absl::Span<const Value> in, Shapes& out) const;
  PooledVector<lowering::Op> Lower(lowering::Builder& b, absl::Span<const lowering::Op> in) const;
};

struct ForeachAdagradOp {
  bool weight_decay;
  bool maximize = false;
  LAZULI_OP("foreach_adagrad", "aten::_foreach_adagrad", weight_decay, maximize);
  static constexpr bool kResultsFit = true;
  static constexpr OpDoc kDoc{
      "Adagrad on lists of parameters, gradients and sums of squares; numbers: lr, eps, weight "
      "decay.",
      {"operands"}};
  bool InferAll(absl::Span<const Value> in, Shapes& out) const;
  PooledVector<lowering::Op> Lower(lowering::Builder& b, absl::Span<const lowering::Op> in) const;
};

// The other algorithms: one rule an element, or a matrix. What each of them reads beside parameter
// and gradient is in update_rules.cc.
enum class UpdateRule : uint8_t {
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
// Numbers that a rule takes, before the one of weight decay, and states that it reads and makes.
int64_t NumbersOf(UpdateRule rule);
int64_t StatesOf(UpdateRule rule);

struct ForeachUpdateOp {
  UpdateRule rule;
  Decay decay;
  bool maximize;
  LAZULI_OP("foreach_update", "aten::_foreach_update", rule, decay, maximize);
  static constexpr OpDoc kDoc{
      "The update of NAdam (rule 0), RAdam (1, 2), Adamax (3), Adadelta (4), ASGD (5), Rprop (6), "
      "Lion (7) or Adafactor (8, 9) on lists of parameters, gradients and the states of the rule; "
      "numbers: those of the rule, weight decay (decoupled: 1 - lr * weight decay).",
      {"operands"}};
  bool InferAll(absl::Span<const Value> in, Shapes& out) const;
  PooledVector<lowering::Op> Lower(lowering::Builder& b, absl::Span<const lowering::Op> in) const;
};

// Scaled tensors, and the norm of all their elements before.
struct ForeachClipNormOp {
  double order;  // 1, 2, ...; 0: infinity, the largest absolute value
  LAZULI_OP("foreach_clip_norm", "aten::_foreach_clip_norm", order);
  static constexpr OpDoc kDoc{
      "Tensors scaled such that the norm of all their elements is at most a number, and the norm "
      "before scaling.",
      {"operands"}};
  PooledVector<lowering::Op> Lower(lowering::Builder& b, absl::Span<const lowering::Op> in) const;
};

}  // namespace lazuli::lazy
