// Normalisation of each channel of each sample, by that of a batch.
#include <string_view>

#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/functions.h"

namespace lazuli::lazy {

Tensor InstanceNorm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                    const Tensor& weight, const Tensor& bias, bool use_input_stats,
                    const Number& momentum, double eps) {
  constexpr char kOp[] = "instance_norm";
  if (x.rank() < 2) ThrowRecordError(kOp, InvalidArgument("takes x [N, C, ...], not ", x.shape()));
  const int64_t n = x.dim(0), channels = x.dim(1);
  if (!use_input_stats && !(running_mean.defined() && running_var.defined())) {
    ThrowRecordError(kOp, InvalidArgument("expected running_mean and running_var to be defined "
                                          "when use_input_stats is false"));
  }
  if (!use_input_stats)
    return BatchNorm(x, running_mean, running_var, weight, bias, /*training=*/false, momentum, eps);
  int64_t count = 1;
  for (int64_t d = 2; d < x.rank(); ++d) count *= x.dim(d);
  if (count == 1) {
    ThrowRecordError(kOp, InvalidArgument("expected more than 1 spatial element when training, got "
                                          "input size ",
                                          x.shape()));
  }
  if (x.shape().num_elements() == 0) return Clone(x);
  // The samples are channels of one, and what is running the mean of theirs.
  Dims dims = DimsOf(x.shape());
  dims[0] = 1;
  dims[1] = n * channels;
  const bool running = running_mean.defined() && running_var.defined();
  const auto each = [&](const Tensor& t) {
    return running ? Clone(Repeat(Detach(t), {n})) : Tensor();
  };
  const Tensor means = each(running_mean), variances = each(running_var);
  const Tensor y = Reshape(BatchNorm(Reshape(x, dims), means, variances, Tensor(), Tensor(),
                                     /*training=*/true, momentum, eps),
                           x.shape().dims());
  if (running) {
    const GradModeGuard no_grad(false);
    const auto mean_of = [&](const Tensor& t) { return Mean(Reshape(t, {n, channels}), {0}); };
    Update(kOp, running_mean, [&] { return mean_of(means); });
    Update(kOp, running_var, [&] { return mean_of(variances); });
  }
  const Dims column = ChannelDims(x.shape());
  const auto stretched = [&](std::string_view what, const Tensor& t) {
    if (t.rank() != 1 || t.dim(0) != channels) {
      ThrowRecordError(
          kOp, InvalidArgument(what, " is ", t.shape(), ", its dims must be (", channels, ")"));
    }
    return Reshape(t, column);
  };
  Tensor z = y;
  if (weight.defined()) z = z * stretched("weight", weight);
  if (bias.defined()) z = z + stretched("bias", bias);
  return z;
}

}  // namespace lazuli::lazy
