// AdaptiveLogSoftmaxWithLoss in LibTorch's words.
#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <utility>
#include <vector>

#include "lazuli/torch/nn.h"

namespace lazuli::torch_names::nn {

class AdaptiveLogSoftmaxWithLossOptions {
 public:
  AdaptiveLogSoftmaxWithLossOptions(std::int64_t in_features, std::int64_t n_classes,
                                    std::vector<std::int64_t> cutoffs)
      : in_features_(in_features), n_classes_(n_classes), cutoffs_(std::move(cutoffs)) {}
  std::int64_t in_features() const { return in_features_; }
  std::int64_t n_classes() const { return n_classes_; }
  const std::vector<std::int64_t>& cutoffs() const { return cutoffs_; }
  AdaptiveLogSoftmaxWithLossOptions& div_value(double v) { return options_.div_value = v, *this; }
  double div_value() const { return options_.div_value; }
  AdaptiveLogSoftmaxWithLossOptions& head_bias(bool v) { return options_.head_bias = v, *this; }
  bool head_bias() const { return options_.head_bias; }

 private:
  friend class AdaptiveLogSoftmaxWithLossImpl;
  std::int64_t in_features_, n_classes_;
  std::vector<std::int64_t> cutoffs_;
  lazuli::nn::AdaptiveLogSoftmaxWithLossOptions options_;
};
using ASMoutput = lazuli::nn::AdaptiveLogSoftmaxOutput;

class AdaptiveLogSoftmaxWithLossImpl : public lazuli::nn::AdaptiveLogSoftmaxWithLoss {
 public:
  AdaptiveLogSoftmaxWithLossImpl(std::int64_t in_features, std::int64_t n_classes,
                                 std::vector<std::int64_t> cutoffs, LAZULI_LOC)
      : AdaptiveLogSoftmaxWithLossImpl(
            AdaptiveLogSoftmaxWithLossOptions(in_features, n_classes, std::move(cutoffs)), loc) {}
  explicit AdaptiveLogSoftmaxWithLossImpl(const AdaptiveLogSoftmaxWithLossOptions& o, LAZULI_LOC)
      : lazuli::nn::AdaptiveLogSoftmaxWithLoss(o.in_features_, o.n_classes_, o.cutoffs_, o.options_,
                                               loc),
        options(o) {}
  void pretty_print(std::ostream& os) const { os << "torch::nn::AdaptiveLogSoftmaxWithLoss"; }
  const AdaptiveLogSoftmaxWithLossOptions options;
};
class AdaptiveLogSoftmaxWithLoss : public ModuleHolder<AdaptiveLogSoftmaxWithLossImpl> {
 public:
  using ModuleHolder::ModuleHolder;
  ASMoutput operator()(const Tensor& x, const Tensor& target, LAZULI_LOC) const {
    return get()->forward(x, target, loc);
  }
};

}  // namespace lazuli::torch_names::nn
