// Activations, losses and normalisation: what lazuli/ops.h and nn::functional declare.
#include <algorithm>
#include <optional>

#include "cpp_api/src/operands.h"
#include "ir/hlo/monoid.h"
#include "lazuli/nn.h"
#include "lazuli/ops.h"
#include "lazy/tensor/function_scope.h"

namespace lazuli {

using Locs = SourceLocation;

// --- activations
#define LAZULI_ACTIVATION(public_name, function)                                      \
  Tensor public_name(const Tensor& x, Locs loc) {                                     \
    return CallTensor(loc, [&] { return lazy::function(InFloat(x, #public_name)); }); \
  }
LAZULI_ACTIVATION(silu, Silu)
LAZULI_ACTIVATION(selu, Selu)
LAZULI_ACTIVATION(log_sigmoid, LogSigmoid)
LAZULI_ACTIVATION(hardsigmoid, Hardsigmoid)
LAZULI_ACTIVATION(hardswish, Hardswish)
LAZULI_ACTIVATION(mish, Mish)
LAZULI_ACTIVATION(softsign, Softsign)
#undef LAZULI_ACTIVATION

Tensor gelu(const Tensor& x, bool tanh, Locs loc) {
  return CallTensor(loc, [&] { return lazy::Gelu(In(x, "gelu"), tanh); });
}
Tensor leaky_relu(const Tensor& x, const Scalar& negative_slope, Locs loc) {
  return CallTensor(loc, [&] {
    const lazy::Tensor t = InFloat(x, "leaky_relu");
    return lazy::LeakyRelu(t, NumberBeside(negative_slope, t));
  });
}
Tensor elu(const Tensor& x, const Scalar& alpha, Locs loc) {
  return CallTensor(loc, [&] {
    const lazy::Tensor t = InFloat(x, "elu");
    return lazy::Elu(t, NumberBeside(alpha, t));
  });
}
Tensor celu(const Tensor& x, const Scalar& alpha, Locs loc) {
  return CallTensor(loc, [&] {
    const lazy::Tensor t = InFloat(x, "celu");
    return lazy::Celu(t, NumberBeside(alpha, t));
  });
}
Tensor softplus(const Tensor& x, const Scalar& beta, const Scalar& threshold, Locs loc) {
  return CallTensor(loc, [&] {
    const lazy::Tensor t = InFloat(x, "softplus");
    return lazy::Softplus(t, NumberBeside(beta, t), NumberBeside(threshold, t));
  });
}
Tensor hardtanh(const Tensor& x, const Scalar& low, const Scalar& high, Locs loc) {
  return CallTensor(loc, [&] {
    const lazy::Tensor t = InFloat(x, "hardtanh");
    return lazy::Hardtanh(t, NumberBeside(low, t), NumberBeside(high, t));
  });
}
Tensor relu6(const Tensor& x, Locs loc) {
  return CallTensor(loc, [&] { return lazy::Relu6(In(x, "relu6")); });
}
Tensor prelu(const Tensor& x, const Tensor& weight, Locs loc) {
  return CallTensor(loc, [&] { return lazy::Prelu(In(x, "prelu"), In(weight, "prelu")); });
}
Tensor glu(const Tensor& x, std::int64_t dim, Locs loc) {
  return CallTensor(loc, [&] { return lazy::Glu(InFloat(x, "glu"), dim); });
}

namespace nn::functional {
namespace {

// y times weight plus bias, each of which may be undefined; dims are what they are seen as.
lazy::Tensor Affine(const lazy::Tensor& y, const Tensor& weight, const Tensor& bias,
                    absl::Span<const std::int64_t> dims) {
  lazy::Tensor r = y;
  if (weight.defined()) r = r * lazy::Reshape(TensorAccess::Unwrap(weight), dims);
  if (bias.defined()) r = r + lazy::Reshape(TensorAccess::Unwrap(bias), dims);
  return r;
}

// Throws unless t is undefined or has these dims.
void CheckDims(std::string_view op, std::string_view what, const Tensor& t, const Dims& dims) {
  if (!t.defined() || t.sizes() == dims) return;
  lazy::ThrowRecordError(
      op, ir::InvalidArgument(what, " is ", TensorAccess::Unwrap(t).shape(), ", its dims must be (",
                              ir::Join(dims, ", "), ")"));
}

// The position of the first of the normalised dims, which x must end in.
std::int64_t NormalizedAxis(std::string_view op, const lazy::Tensor& x, const Dims& normalized) {
  const auto axis = x.rank() - static_cast<std::int64_t>(normalized.size());
  bool fits = axis >= 0 && !normalized.empty();
  for (std::size_t i = 0; fits && i < normalized.size(); ++i) {
    fits = x.dim(axis + static_cast<std::int64_t>(i)) == normalized[i];
  }
  if (!fits) {
    lazy::ThrowRecordError(op, ir::InvalidArgument("x is ", x.shape(), ", its last dims must be (",
                                                   ir::Join(normalized, ", "), ")"));
  }
  return axis;
}

// A number beside the tensor as sums are computed with it (lazy/ops/wide.h).
ir::Value NumberBesideWide(const Scalar& scalar, const lazy::Tensor& tensor) {
  const ir::DType wide = hlo::AccumulationType(tensor.dtype());
  return TensorAccess::Slot(scalar, TensorAccess::ToNumber(scalar).TypeBeside(wide));
}

// The loss of x and y broadcasts them.
void CheckBroadcast(std::string_view op, const lazy::Tensor& x, const lazy::Tensor& y) {
  bool fits = true;
  for (std::int64_t d = 1; d <= std::min(x.rank(), y.rank()); ++d) {
    const std::int64_t a = x.dim(x.rank() - d), b = y.dim(y.rank() - d);
    fits = fits && (a == b || a == 1 || b == 1);
  }
  if (fits) return;
  lazy::ThrowRecordError(
      op, ir::InvalidArgument("shapes ", x.shape(), " and ", y.shape(), " do not broadcast"));
}

// running = (1 - momentum) * running + momentum * now, in place and without history.
void UpdateRunning(const Tensor& running, const lazy::Tensor& now, const Scalar& momentum,
                   const Scalar& rest) {
  const lazy::Tensor target = TensorAccess::Unwrap(running);
  const lazy::GradModeGuard no_grad(false);
  lazy::Update("batch_norm", target, [&] {
    const lazy::Tensor kept = lazy::Mul(target, NumberBeside(rest, target));
    return kept + lazy::Mul(lazy::To(now, target.dtype()), NumberBeside(momentum, target));
  });
}

}  // namespace

// --- losses
Tensor cross_entropy(const Tensor& logits, const Tensor& target, const Tensor& weight,
                     std::optional<std::int64_t> ignore_index, Reduction reduction,
                     double label_smoothing, Locs loc) {
  return CallTensor(loc, [&] {
    return lazy::CrossEntropy(In(logits, "cross_entropy"), In(target, "cross_entropy"),
                              {TensorAccess::Unwrap(weight), ignore_index, label_smoothing},
                              ToLazy(reduction));
  });
}
Tensor nll_loss(const Tensor& log_probs, const Tensor& target, const Tensor& weight,
                std::optional<std::int64_t> ignore_index, Reduction reduction, Locs loc) {
  return CallTensor(loc, [&] {
    return lazy::NllLoss(In(log_probs, "nll_loss"), In(target, "nll_loss"),
                         {TensorAccess::Unwrap(weight), ignore_index, 0}, ToLazy(reduction));
  });
}
Tensor mse_loss(const Tensor& x, const Tensor& y, Reduction reduction, Locs loc) {
  return CallTensor(loc, [&] {
    const lazy::Tensor a = In(x, "mse_loss"), b = In(y, "mse_loss");
    CheckBroadcast("mse_loss", a, b);
    return lazy::MseLoss(a, b, ToLazy(reduction));
  });
}
Tensor l1_loss(const Tensor& x, const Tensor& y, Reduction reduction, Locs loc) {
  return CallTensor(loc, [&] {
    const lazy::Tensor a = In(x, "l1_loss"), b = In(y, "l1_loss");
    CheckBroadcast("l1_loss", a, b);
    return lazy::L1Loss(a, b, ToLazy(reduction));
  });
}
Tensor smooth_l1_loss(const Tensor& x, const Tensor& y, const Scalar& beta, Reduction reduction,
                      Locs loc) {
  return CallTensor(loc, [&] {
    const lazy::Tensor a = In(x, "smooth_l1_loss"), b = In(y, "smooth_l1_loss");
    CheckBroadcast("smooth_l1_loss", a, b);
    if (!(beta.value() > 0)) {
      lazy::ThrowRecordError("smooth_l1_loss",
                             ir::InvalidArgument("beta must be above 0, is ", beta.value(),
                                                 "; l1_loss is its limit at 0"));
    }
    return lazy::SmoothL1Loss(a, b, NumberBesideWide(beta, a), ToLazy(reduction));
  });
}
Tensor huber_loss(const Tensor& x, const Tensor& y, const Scalar& delta, Reduction reduction,
                  Locs loc) {
  return CallTensor(loc, [&] {
    const lazy::Tensor a = In(x, "huber_loss"), b = In(y, "huber_loss");
    CheckBroadcast("huber_loss", a, b);
    if (!(delta.value() > 0)) {
      lazy::ThrowRecordError("huber_loss",
                             ir::InvalidArgument("delta must be above 0, is ", delta.value()));
    }
    return lazy::HuberLoss(a, b, NumberBesideWide(delta, a), ToLazy(reduction));
  });
}
Tensor kl_div(const Tensor& log_probs, const Tensor& target, bool log_target, Reduction reduction,
              Locs loc) {
  return CallTensor(loc, [&] {
    const lazy::Tensor a = In(log_probs, "kl_div"), b = In(target, "kl_div");
    CheckBroadcast("kl_div", a, b);
    return lazy::KlDiv(a, b, log_target, ToLazy(reduction));
  });
}
Tensor binary_cross_entropy(const Tensor& x, const Tensor& target, const Tensor& weight,
                            Reduction reduction, Locs loc) {
  return CallTensor(loc, [&] {
    return lazy::BinaryCrossEntropy(In(x, "binary_cross_entropy"),
                                    In(target, "binary_cross_entropy"),
                                    TensorAccess::Unwrap(weight), ToLazy(reduction));
  });
}
Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& target,
                                        const Tensor& weight, const Tensor& pos_weight,
                                        Reduction reduction, Locs loc) {
  return CallTensor(loc, [&] {
    constexpr const char* kName = "binary_cross_entropy_with_logits";
    return lazy::BceWithLogits(In(logits, kName), In(target, kName), TensorAccess::Unwrap(weight),
                               TensorAccess::Unwrap(pos_weight), ToLazy(reduction));
  });
}

// --- layers as functions
Tensor embedding(const Tensor& index, const Tensor& weight, std::optional<std::int64_t> padding_idx,
                 Locs loc) {
  return CallTensor(loc, [&] {
    const lazy::Tensor i = In(index, "embedding"), w = In(weight, "embedding");
    if (w.rank() != 2) {
      lazy::ThrowRecordError("embedding",
                             ir::InvalidArgument("weight must have rank 2, is ", w.shape()));
    }
    if (!ir::IsIntegral(i.dtype())) {
      lazy::ThrowRecordError("embedding",
                             ir::InvalidArgument("indices must be integers, not ", i.shape()));
    }
    if (padding_idx) {
      if (*padding_idx < -w.dim(0) || *padding_idx >= w.dim(0)) {
        lazy::ThrowRecordError("embedding",
                               ir::OutOfRange("padding_idx ", *padding_idx, " is out of range for ",
                                              w.dim(0), " rows"));
      }
      if (*padding_idx < 0) *padding_idx += w.dim(0);
    }
    ir::Dims dims(i.shape().dims().begin(), i.shape().dims().end());
    dims.push_back(w.dim(1));
    const lazy::Tensor flat = lazy::Reshape(i, {-1});
    const lazy::FunctionScope function("embedding");
    lazy::Tensor rows = lazy::IndexSelect(w, 0, flat);
    if (padding_idx) {
      const lazy::Tensor padding =
          lazy::Eq(flat, lazy::Constant(static_cast<double>(*padding_idx), flat.dtype()));
      rows = lazy::Where(lazy::Unsqueeze(padding, 1), lazy::Detach(rows), rows);
    }
    return lazy::Reshape(rows, dims);
  });
}

Tensor layer_norm(const Tensor& x, const Dims& normalized_shape, const Tensor& weight,
                  const Tensor& bias, double eps, Locs loc) {
  return CallTensor(loc, [&] {
    const lazy::Tensor in = In(x, "layer_norm");
    const std::int64_t axis = NormalizedAxis("layer_norm", in, normalized_shape);
    CheckDims("layer_norm", "weight", weight, normalized_shape);
    CheckDims("layer_norm", "bias", bias, normalized_shape);
    return Affine(lazy::LayerNorm(in, axis, eps), weight, bias, normalized_shape);
  });
}

Tensor rms_norm(const Tensor& x, const Dims& normalized_shape, const Tensor& weight, double eps,
                Locs loc) {
  return CallTensor(loc, [&] {
    const lazy::Tensor in = In(x, "rms_norm");
    const std::int64_t axis = NormalizedAxis("rms_norm", in, normalized_shape);
    CheckDims("rms_norm", "weight", weight, normalized_shape);
    return Affine(lazy::RmsNorm(in, axis, eps), weight, {}, normalized_shape);
  });
}

Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& weight, const Tensor& bias,
                  double eps, Locs loc) {
  return CallTensor(loc, [&] {
    const lazy::Tensor in = In(x, "group_norm");
    if (in.rank() >= 2) {
      CheckDims("group_norm", "weight", weight, {in.dim(1)});
      CheckDims("group_norm", "bias", bias, {in.dim(1)});
    }
    const lazy::Tensor y = lazy::GroupNorm(in, groups, eps);
    return Affine(y, weight, bias, lazy::ChannelDims(in.shape()));
  });
}

Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                  const Tensor& weight, const Tensor& bias, bool training, const Scalar& momentum,
                  double eps, Locs loc) {
  return CallTensor(loc, [&] {
    const lazy::Tensor in = In(x, "batch_norm");
    if (in.rank() < 2)
      lazy::ThrowRecordError("batch_norm",
                             ir::InvalidArgument("takes x [N, C, ...], not ", in.shape()));
    const std::pair<std::string_view, const Tensor*> channels[] = {{"running_mean", &running_mean},
                                                                   {"running_var", &running_var},
                                                                   {"weight", &weight},
                                                                   {"bias", &bias}};
    for (const auto& [what, t] : channels) CheckDims("batch_norm", what, *t, {in.dim(1)});
    const ir::Dims dims = lazy::ChannelDims(in.shape());
    const bool running = running_mean.defined() && running_var.defined();
    if (!training && running) {
      const lazy::Tensor mean = lazy::Reshape(TensorAccess::Unwrap(running_mean), dims);
      const lazy::Tensor variance = lazy::Reshape(TensorAccess::Unwrap(running_var), dims);
      return Affine((in - mean) * lazy::Rsqrt(variance + eps), weight, bias, dims);
    }
    const std::int64_t count = in.dim(1) == 0 ? 0 : in.shape().num_elements() / in.dim(1);
    if (count < 2) {
      lazy::ThrowRecordError("batch_norm",
                             ir::InvalidArgument("training needs more than one value a channel, x "
                                                 "is ",
                                                 in.shape()));
    }
    const lazy::Moments moments = lazy::BatchNorm(in, eps);
    if (running) {
      const Scalar rest(1 - momentum.value());
      const double unbiased = static_cast<double>(count) / static_cast<double>(count - 1);
      UpdateRunning(running_mean, lazy::Detach(moments.mean), momentum, rest);
      UpdateRunning(running_var, lazy::Detach(moments.variance) * unbiased, momentum, rest);
    }
    return Affine(moments.y, weight, bias, dims);
  });
}

}  // namespace nn::functional
}  // namespace lazuli
