#include <cstdint>
#include <string>

#include "lazuli/autograd.h"
#include "lazuli/execution.h"
#include "lazuli/internal/fail.h"
#include "lazuli/nn.h"

namespace lazuli::nn {
namespace {

using lazuli::internal::Fail;

void CheckDims(const char* layer, const Dims& dims, SourceLocation loc) {
  for (const std::int64_t d : dims) {
    if (d >= 1) continue;
    Fail(ErrorCode::kInvalidArgument,
         std::string(layer) + ": a dim is " + std::to_string(d) + ", it must be at least 1", loc);
  }
  if (dims.empty()) {
    Fail(ErrorCode::kInvalidArgument, std::string(layer) + ": there is no dim to normalise over",
         loc);
  }
}

}  // namespace

BatchNorm::BatchNorm(const char* name, std::int64_t min_rank, std::int64_t max_rank,
                     std::int64_t channels, const BatchNormOptions& options, SourceLocation loc)
    : name_(name), min_rank_(min_rank), max_rank_(max_rank), options_(options) {
  const SiteScope site(loc);
  CheckDims(name, {channels}, loc);
  if (options.affine) {
    weight = register_parameter("weight", ones({channels}));
    bias = register_parameter("bias", zeros({channels}));
  }
  if (options.track_running_stats) {
    running_mean = register_buffer("running_mean", zeros({channels}));
    running_var = register_buffer("running_var", ones({channels}));
    num_batches_tracked = register_buffer("num_batches_tracked", zeros({}, kInt64));
  }
}

Tensor BatchNorm::forward(const Tensor& x, SourceLocation loc) const {
  const SiteScope site(loc);
  if (x.defined() && (x.dim() < min_rank_ || x.dim() > max_rank_)) {
    const std::string ranks = std::to_string(min_rank_) +
                              (min_rank_ == max_rank_ ? "" : " or " + std::to_string(max_rank_));
    Fail(ErrorCode::kInvalidArgument,
         std::string(name_) + ": takes rank " + ranks + ", not " + std::to_string(x.dim()), loc);
  }
  const bool training = is_training();
  Tensor y = functional::batch_norm(x, running_mean, running_var, weight, bias, training,
                                    options_.momentum, options_.eps);
  if (training && num_batches_tracked.defined()) {
    const NoGrad no_grad;
    Tensor(num_batches_tracked).add_(1);
  }
  return y;
}

LayerNorm::LayerNorm(const IntList& normalized_shape, const LayerNormOptions& options,
                     SourceLocation loc)
    : dims_(normalized_shape), eps_(options.eps) {
  const SiteScope site(loc);
  CheckDims("LayerNorm", dims_, loc);
  if (options.affine) weight = register_parameter("weight", ones(dims_));
  if (options.affine && options.bias) bias = register_parameter("bias", zeros(dims_));
}

Tensor LayerNorm::forward(const Tensor& x, SourceLocation loc) const {
  return functional::layer_norm(x, dims_, weight, bias, eps_, loc);
}

GroupNorm::GroupNorm(std::int64_t groups, std::int64_t channels, const GroupNormOptions& options,
                     SourceLocation loc)
    : groups_(groups), eps_(options.eps) {
  const SiteScope site(loc);
  CheckDims("GroupNorm", {channels}, loc);
  if (groups < 1 || channels % groups != 0) {
    Fail(ErrorCode::kInvalidArgument,
         "GroupNorm: " + std::to_string(groups) + " groups do not divide " +
             std::to_string(channels) + " channels",
         loc);
  }
  if (options.affine) {
    weight = register_parameter("weight", ones({channels}));
    bias = register_parameter("bias", zeros({channels}));
  }
}

Tensor GroupNorm::forward(const Tensor& x, SourceLocation loc) const {
  return functional::group_norm(x, groups_, weight, bias, eps_, loc);
}

RMSNorm::RMSNorm(const IntList& normalized_shape, double eps, SourceLocation loc)
    : dims_(normalized_shape), eps_(eps) {
  const SiteScope site(loc);
  CheckDims("RMSNorm", dims_, loc);
  weight = register_parameter("weight", ones(dims_));
}

Tensor RMSNorm::forward(const Tensor& x, SourceLocation loc) const {
  return functional::rms_norm(x, dims_, weight, eps_, loc);
}

}  // namespace lazuli::nn
