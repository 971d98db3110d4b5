#include "lazuli/nn/adaptive.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "lazuli/internal/fail.h"

namespace lazuli::nn {
namespace {

constexpr char kAdaptive[] = "AdaptiveLogSoftmaxWithLoss: ";

void RequireOfAdaptive(bool holds, const std::string& what, SourceLocation loc) {
  if (!holds) lazuli::internal::Fail(ErrorCode::kInvalidArgument, kAdaptive + what, loc);
}

// With the number of classes as the last one.
std::vector<std::int64_t> CheckedCutoffs(std::vector<std::int64_t> cutoffs, std::int64_t classes,
                                         SourceLocation loc) {
  cutoffs.push_back(classes);
  std::int64_t before = 0;
  for (const std::int64_t cutoff : cutoffs) {
    RequireOfAdaptive(cutoff > before,
                      "the cutoffs must rise from 1 on and stay below the number of classes", loc);
    before = cutoff;
  }
  RequireOfAdaptive(cutoffs.size() > 1, "there are no cutoffs", loc);
  return cutoffs;
}

}  // namespace

AdaptiveLogSoftmaxWithLoss::AdaptiveLogSoftmaxWithLoss(
    std::int64_t in_features, std::int64_t classes, std::vector<std::int64_t> cutoffs,
    const AdaptiveLogSoftmaxWithLossOptions& options, SourceLocation loc)
    : head(in_features,
           (cutoffs.empty() ? 0 : cutoffs[0]) + static_cast<std::int64_t>(cutoffs.size()),
           {.bias = options.head_bias}, loc),
      cutoffs_(CheckedCutoffs(std::move(cutoffs), classes, loc)) {
  register_module("head", head, loc);
  for (std::size_t i = 0; i + 1 < cutoffs_.size(); ++i) {
    const double width = std::floor(static_cast<double>(in_features) /
                                    std::pow(options.div_value, static_cast<double>(i + 1)));
    const std::int64_t hidden = std::max<std::int64_t>(static_cast<std::int64_t>(width), 1);
    Sequential cluster;
    cluster.push_back(Linear(in_features, hidden, {.bias = false}, loc), loc);
    cluster.push_back(Linear(hidden, cutoffs_[i + 1] - cutoffs_[i], {.bias = false}, loc), loc);
    tails_.register_module(std::to_string(i), cluster, loc);
    tail.push_back(std::move(cluster));
  }
  register_module("tail", tails_, loc);
}

Tensor AdaptiveLogSoftmaxWithLoss::log_prob(const Tensor& x, SourceLocation loc) const {
  const SiteScope site(loc);
  const Tensor first = head(x, loc).log_softmax(1);
  std::vector<Tensor> parts{first.narrow(1, 0, cutoffs_[0])};
  for (std::size_t i = 0; i < tail.size(); ++i) {
    const Tensor share = first.narrow(1, cutoffs_[0] + static_cast<std::int64_t>(i), 1);
    parts.push_back(tail[i](x, loc).log_softmax(1) + share);
  }
  return cat(parts, 1);
}

Tensor AdaptiveLogSoftmaxWithLoss::predict(const Tensor& x, SourceLocation loc) const {
  return log_prob(x, loc).argmax(1, false, loc);
}

AdaptiveLogSoftmaxOutput AdaptiveLogSoftmaxWithLoss::forward(const Tensor& x, const Tensor& target,
                                                             SourceLocation loc) const {
  const SiteScope site(loc);
  const bool single = target.dim() == 0;
  RequireOfAdaptive(target.dim() <= 1,
                    "target must be of rank 0 or 1, is of " + std::to_string(target.dim()), loc);
  RequireOfAdaptive(
      x.dim() == (single ? 1 : 2),
      "x must be of rank " + std::to_string(single ? 1 : 2) + ", is of " + std::to_string(x.dim()),
      loc);
  RequireOfAdaptive(single || x.size(0) == target.size(0),
                    "x and target must have as many rows, have " + std::to_string(x.size(0)) +
                        " and " + std::to_string(single ? 1 : target.size(0)),
                    loc);
  const Tensor rows = single ? x.unsqueeze(0) : x;
  const Tensor labels = single ? target.unsqueeze(0) : target;
  const Tensor output = log_prob(rows, loc).gather(1, labels.unsqueeze(1)).squeeze(1);
  return {single ? output.squeeze(0) : output, -output.mean()};
}

}  // namespace lazuli::nn
