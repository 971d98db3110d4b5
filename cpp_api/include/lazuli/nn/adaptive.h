// A softmax over many classes whose rare ones share small projections (Grave et al., 2017).
#pragma once

#include <cstdint>
#include <vector>

#include "lazuli/nn/layers.h"
#include "lazuli/nn/sequential.h"

namespace lazuli::nn {

struct AdaptiveLogSoftmaxWithLossOptions {
  double div_value = 4;    // how many times smaller the projection of each cluster is
  bool head_bias = false;  // of the head, which has the frequent classes
};

struct AdaptiveLogSoftmaxOutput {
  Tensor output;  // [N], the log-probabilities of the targets
  Tensor loss;    // the mean of their negatives
};

// Classes in the order of how frequent they are, cut into clusters: the head has those below the first
// cutoff and one output for each other cluster.
class LAZULI_API AdaptiveLogSoftmaxWithLoss : public Module {
 public:
  // Throws Error(kInvalidArgument) unless the cutoffs rise from 1 on and stay below `classes`.
  AdaptiveLogSoftmaxWithLoss(std::int64_t in_features, std::int64_t classes,
                             std::vector<std::int64_t> cutoffs,
                             const AdaptiveLogSoftmaxWithLossOptions& options = {}, LAZULI_LOC);
  // Of x [N, in_features] and targets [N], or of one row and its target.
  AdaptiveLogSoftmaxOutput forward(const Tensor& x, const Tensor& target, LAZULI_LOC) const;
  AdaptiveLogSoftmaxOutput operator()(const Tensor& x, const Tensor& target, LAZULI_LOC) const {
    return forward(x, target, loc);
  }
  // Of all classes: [N, classes].
  Tensor log_prob(const Tensor& x, LAZULI_LOC) const;
  // The class with the highest probability of each row.
  Tensor predict(const Tensor& x, LAZULI_LOC) const;

  Linear head;
  std::vector<Sequential> tail;  // of each cluster a projection and its classes

 private:
  std::vector<std::int64_t> cutoffs_;  // the last one is `classes`
  Module tails_;
};

}  // namespace lazuli::nn
