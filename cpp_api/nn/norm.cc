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

// Registers what an InstanceNorm has.
template <class L, class O>
void MakeInstanceNorm(L& layer, const char* name, std::int64_t channels, const O& options,
                      SourceLocation loc) {
  const SiteScope site(loc);
  CheckDims(name, {channels}, loc);
  if (options.affine) {
    layer.weight = layer.register_parameter("weight", ones({channels}));
    layer.bias = layer.register_parameter("bias", zeros({channels}));
  }
  if (options.track_running_stats) {
    layer.running_mean = layer.register_buffer("running_mean", zeros({channels}));
    layer.running_var = layer.register_buffer("running_var", ones({channels}));
    layer.num_batches_tracked = layer.register_buffer("num_batches_tracked", zeros({}, kInt64));
  }
}

// Of a batch [N, C, space...], or of one sample of it.
template <class L, class O>
Tensor InstanceNormed(const L& layer, const char* name, const Tensor& x, std::int64_t space,
                      const O& options, SourceLocation loc) {
  const SiteScope site(loc);
  if (x.defined() && x.dim() != space + 1 && x.dim() != space + 2) {
    Fail(ErrorCode::kInvalidArgument,
         std::string(name) + ": takes " + std::to_string(space + 1) + " or " +
             std::to_string(space + 2) + " dims, not " + std::to_string(x.dim()),
         loc);
  }
  const bool one = x.defined() && x.dim() == space + 1;
  const Tensor y = functional::instance_norm(
      one ? x.unsqueeze(0) : x, layer.running_mean, layer.running_var, layer.weight, layer.bias,
      layer.is_training() || !options.track_running_stats, options.momentum, options.eps);
  return one ? y.squeeze(0) : y;
}

}  // namespace

BatchNorm::BatchNorm(const char* name, std::int64_t min_rank, std::int64_t max_rank,
                     std::int64_t channels, const BatchNormOptions& options, SourceLocation loc)
    : name_(name), min_rank_(min_rank), max_rank_(max_rank), options_(options) {
  const SiteScope site(loc);
  CheckDims(name, {channels}, loc);
  if (options.affine) {
    weight = register_parameter("weight", ones({channels}));
    if (options.bias) bias = register_parameter("bias", zeros({channels}));
  }
  if (options.track_running_stats) {
    running_mean = register_buffer("running_mean", zeros({channels}));
    running_var = register_buffer("running_var", ones({channels}));
    num_batches_tracked = register_buffer("num_batches_tracked", zeros({}, kInt64));
  }
}

// The running statistics are the mean of those of all batches: each batch counts 1 / how many there were.
Tensor BatchNorm::ForwardByMean(const Tensor& x) const {
  Tensor mean = zeros_like(running_mean), variance = zeros_like(running_var);
  Tensor y = functional::batch_norm(x, mean, variance, weight, bias, true, 1.0, options_.eps);
  const NoGrad no_grad;
  const Tensor share = 1.0 / (num_batches_tracked + 1).to(mean.dtype());
  Tensor(running_mean).add_((mean - running_mean) * share);
  Tensor(running_var).add_((variance - running_var) * share);
  return y;
}

Tensor BatchNorm::forward(const Tensor& x, SourceLocation loc) const {
  const SiteScope site(loc);
  if (x.defined() && (x.dim() < min_rank_ || x.dim() > max_rank_)) {
    const std::string ranks = std::to_string(min_rank_) +
                              (min_rank_ == max_rank_ ? "" : " or " + std::to_string(max_rank_));
    Fail(ErrorCode::kInvalidArgument,
         std::string(name_) + ": takes rank " + ranks + ", not " + std::to_string(x.dim()), loc);
  }
  // Statistics that a layer had before it was told to track none are read in evaluation alone.
  const bool training = is_training(), tracks = !training || options_.track_running_stats;
  const bool counts = training && tracks && num_batches_tracked.defined();
  const Tensor none, &mean = tracks ? running_mean : none, &variance = tracks ? running_var : none;
  const bool of_batch = training || !mean.defined();
  Tensor y = counts && !options_.momentum
                 ? ForwardByMean(x)
                 : functional::batch_norm(x, mean, variance, weight, bias, of_batch,
                                          options_.momentum.value_or(0), options_.eps);
  if (counts) {
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
  if (options.affine) weight = register_parameter("weight", ones({channels}));
  if (options.affine && options.bias) bias = register_parameter("bias", zeros({channels}));
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

InstanceNorm1d::InstanceNorm1d(std::int64_t channels, const InstanceNorm1dOptions& options,
                               SourceLocation loc)
    : options_(options) {
  MakeInstanceNorm(*this, "InstanceNorm1d", channels, options, loc);
}
Tensor InstanceNorm1d::forward(const Tensor& x, SourceLocation loc) const {
  return InstanceNormed(*this, "InstanceNorm1d", x, 1, options_, loc);
}

InstanceNorm2d::InstanceNorm2d(std::int64_t channels, const InstanceNorm2dOptions& options,
                               SourceLocation loc)
    : options_(options) {
  MakeInstanceNorm(*this, "InstanceNorm2d", channels, options, loc);
}
Tensor InstanceNorm2d::forward(const Tensor& x, SourceLocation loc) const {
  return InstanceNormed(*this, "InstanceNorm2d", x, 2, options_, loc);
}

InstanceNorm3d::InstanceNorm3d(std::int64_t channels, const InstanceNorm3dOptions& options,
                               SourceLocation loc)
    : options_(options) {
  MakeInstanceNorm(*this, "InstanceNorm3d", channels, options, loc);
}
Tensor InstanceNorm3d::forward(const Tensor& x, SourceLocation loc) const {
  return InstanceNormed(*this, "InstanceNorm3d", x, 3, options_, loc);
}

}  // namespace lazuli::nn
