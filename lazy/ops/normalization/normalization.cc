#include "lazy/ops/normalization/normalization.h"

#include <algorithm>
#include <numeric>

#include "lazy/ops/core/wide.h"
#include "lazy/ops/reduce/reduce.h"

namespace lazuli::lazy {
namespace {

using lowering::Opcode;

Dims DimsFrom(int64_t axis, int64_t rank) {
  Dims dims(static_cast<std::size_t>(rank - axis));
  std::iota(dims.begin(), dims.end(), axis);
  return dims;
}

Dims AllButChannels(int64_t rank) {
  Dims dims = DimsFrom(1, rank);
  dims[0] = 0;
  return dims;
}

// {(x - mean) / sqrt(variance + eps), mean, variance} over dims, the latter two in the type they
// are computed in.
std::array<lowering::Op, 3> Standardize(lowering::Builder& b, lowering::Op in, const Dims& dims,
                                        double eps) {
  const DType dtype = in.dtype();
  if (!IsFloat(dtype)) {
    const lowering::Op error = b.Error(InvalidArgument("takes floats, not ", in.shape()));
    return {error, error, error};
  }
  const lowering::Op x = Wide(in);
  const Shape& shape = x.shape();
  Dims kept;
  for (int64_t d = 0, i = 0; d < shape.rank(); ++d) {
    if (i < static_cast<int64_t>(dims.size()) && dims[static_cast<std::size_t>(i)] == d)
      ++i;
    else
      kept.push_back(d);
  }
  const auto mean_of = [&](lowering::Op v) {
    const lowering::Op sum = b.Reduce(Opcode::kAdd, v, dims);
    return b.DividedBy(sum, b.Full(sum.shape(), CountOver(shape, dims)));
  };
  const lowering::Op mean = mean_of(x);
  const lowering::Op centered = b.Minus(x, b.Broadcast(mean, shape.dims(), kept));
  const lowering::Op variance = mean_of(b.Times(centered, centered));
  const lowering::Op scale =
      b.Unary(Opcode::kRsqrt, b.Plus(variance, b.Full(variance.shape(), eps)));
  const lowering::Op y = b.Times(centered, b.Broadcast(scale, shape.dims(), kept));
  return {b.Convert(y, dtype), mean, variance};
}

// Saved are y and the variance: x is not needed.
Tensors StandardizeVjp(const Saved& s, absl::Span<const Tensor> dys, const Dims& dims, double eps) {
  const Shape& shape = s.shape();
  Dims kept_dims(shape.dims().begin(), shape.dims().end());
  for (int64_t d : dims) kept_dims[static_cast<std::size_t>(d)] = 1;
  const Tensor y = Wide(s.y(0)), variance = Reshape(s.y(2), kept_dims) + eps;
  const double count = CountOver(shape, dims);
  Tensor dx;
  const auto add = [&dx](const Tensor& t) { dx = dx.defined() ? dx + t : t; };
  if (dys[0].defined()) {
    const Tensor dy = Wide(dys[0]);
    const Tensor shift = Mean(dy, dims, /*keepdim=*/true);
    const Tensor stretch = Mean(dy * y, dims, /*keepdim=*/true);
    add((dy - shift - y * stretch) * Rsqrt(variance));
  }
  if (dys[1].defined()) add(BroadcastTo(Reshape(dys[1] / count, kept_dims), shape.dims()));
  if (dys[2].defined()) add(Reshape(dys[2] * (2 / count), kept_dims) * y * Sqrt(variance));
  return {dx.defined() ? To(dx, shape.dtype()) : dx};
}

}  // namespace

std::array<lowering::Op, 3> LayerNormOp::Lower(lowering::Builder& b, lowering::Op x) const {
  return Standardize(b, x, DimsFrom(axis, x.rank()), eps);
}
Tensors LayerNormOp::Vjp(const Saved& s, absl::Span<const Tensor> dys) const {
  return StandardizeVjp(s, dys, DimsFrom(axis, s.shape().rank()), eps);
}

std::array<lowering::Op, 3> BatchNormOp::Lower(lowering::Builder& b, lowering::Op x) const {
  return Standardize(b, x, AllButChannels(x.rank()), eps);
}
Tensors BatchNormOp::Vjp(const Saved& s, absl::Span<const Tensor> dys) const {
  return StandardizeVjp(s, dys, AllButChannels(s.shape().rank()), eps);
}

// --- functions

Dims ChannelDims(const Shape& x) {
  Dims dims(static_cast<std::size_t>(x.rank()), 1);
  dims[1] = x.dim(1);
  return dims;
}

Tensor LayerNorm(const Tensor& x, int64_t axis, double eps) {
  const Operand in(x);
  return RecordAll(LayerNormOp{NormalizeDim("layer_norm", axis, x.rank()), eps},
                   absl::MakeConstSpan(&in, 1))[0];
}

Moments BatchNorm(const Tensor& x, double eps) {
  if (x.rank() < 2) {
    ThrowRecordError("batch_norm", InvalidArgument("takes x [N, C, ...], not ", x.shape()));
  }
  const Operand in(x);
  Tensors results = RecordAll(BatchNormOp{eps}, absl::MakeConstSpan(&in, 1));
  return {results[0], results[1], results[2]};
}

Tensor GroupNorm(const Tensor& x, int64_t groups, double eps) {
  if (x.rank() < 2 || groups < 1 || x.dim(1) % groups != 0) {
    ThrowRecordError("group_norm", InvalidArgument(groups, " groups do not divide the channels ",
                                                   "(dim 1) of ", x.shape()));
  }
  int64_t size = x.dim(1) / groups;
  for (int64_t d = 2; d < x.rank(); ++d) size *= x.dim(d);
  return Reshape(LayerNorm(Reshape(x, {x.dim(0), groups, size}), 2, eps), x.shape().dims());
}

Tensor RmsNorm(const Tensor& in, int64_t axis, double eps) {
  const Tensor x = Floating(in);
  const Dims dims = DimsFrom(NormalizeDim("rms_norm", axis, x.rank()), x.rank());
  return InWide(x, [&](const Tensor& wide) {
    return wide * Rsqrt(Mean(wide * wide, dims, /*keepdim=*/true) + eps);
  });
}

// --- the functions of the rows: with weights

namespace {

// y times weight plus bias, each of which may be undefined; dims are what they are seen as.
Tensor Affine(const Tensor& y, const Tensor& weight, const Tensor& bias,
              absl::Span<const int64_t> dims) {
  Tensor r = y;
  if (weight.defined()) r = r * Reshape(weight, dims);
  if (bias.defined()) r = r + Reshape(bias, dims);
  return r;
}

// Throws unless t is undefined or has these dims.
void CheckDims(std::string_view op, std::string_view what, const Tensor& t,
               absl::Span<const int64_t> dims) {
  if (!t.defined() || t.shape().dims() == dims) return;
  ThrowRecordError(
      op, InvalidArgument(what, " is ", t.shape(), ", its dims must be (", Join(dims, ", "), ")"));
}

// The position of the first of the normalised dims, which x must end in.
int64_t NormalizedAxis(std::string_view op, const Tensor& x, absl::Span<const int64_t> normalized) {
  const auto axis = x.rank() - static_cast<int64_t>(normalized.size());
  if (axis < 0 || normalized.empty() ||
      x.shape().dims().subspan(static_cast<std::size_t>(axis)) != normalized) {
    ThrowRecordError(op, InvalidArgument("x is ", x.shape(), ", its last dims must be (",
                                         Join(normalized, ", "), ")"));
  }
  return axis;
}

// running = (1 - momentum) * running + momentum * now, in place and without history.
void UpdateRunning(const Tensor& running, const Tensor& now, const Number& momentum,
                   const Number& rest) {
  const GradModeGuard no_grad(false);
  Update("batch_norm", running,
         [&] { return running * rest + To(now, running.dtype()) * momentum; });
}

}  // namespace

Tensor LayerNorm(const Tensor& x, absl::Span<const int64_t> normalized_shape, const Tensor& weight,
                 const Tensor& bias, double eps) {
  const int64_t axis = NormalizedAxis("layer_norm", x, normalized_shape);
  CheckDims("layer_norm", "weight", weight, normalized_shape);
  CheckDims("layer_norm", "bias", bias, normalized_shape);
  return Affine(LayerNorm(x, axis, eps), weight, bias, normalized_shape);
}

Tensor RmsNorm(const Tensor& x, absl::Span<const int64_t> normalized_shape, const Tensor& weight,
               double eps) {
  const int64_t axis = NormalizedAxis("rms_norm", x, normalized_shape);
  CheckDims("rms_norm", "weight", weight, normalized_shape);
  return Affine(RmsNorm(x, axis, eps), weight, {}, normalized_shape);
}

Tensor GroupNorm(const Tensor& x, int64_t groups, const Tensor& weight, const Tensor& bias,
                 double eps) {
  if (x.rank() >= 2) {
    CheckDims("group_norm", "weight", weight, {x.dim(1)});
    CheckDims("group_norm", "bias", bias, {x.dim(1)});
  }
  const Tensor y = GroupNorm(x, groups, eps);
  return Affine(y, weight, bias, ChannelDims(x.shape()));
}

Tensor BatchNorm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                 const Tensor& weight, const Tensor& bias, bool training, const Number& momentum,
                 double eps) {
  if (x.shape().num_elements() == 0 && x.rank() == 1) return Clone(x);
  if (x.rank() < 2)
    ThrowRecordError("batch_norm", InvalidArgument("takes x [N, C, ...], not ", x.shape()));
  const std::pair<std::string_view, const Tensor*> channels[] = {{"running_mean", &running_mean},
                                                                 {"running_var", &running_var},
                                                                 {"weight", &weight},
                                                                 {"bias", &bias}};
  if (!(eps > 0)) ThrowRecordError("batch_norm", InvalidArgument("eps must be positive, is ", eps));
  for (const auto& [what, t] : channels) CheckDims("batch_norm", what, *t, {x.dim(1)});
  const Dims dims = ChannelDims(x.shape());
  const bool running = running_mean.defined() && running_var.defined();
  for (const auto& [what, t] : {channels[0], channels[1]}) {
    if (!training && !t->defined())
      ThrowRecordError("batch_norm", InvalidArgument(what, " must be defined in evaluation mode"));
  }
  if (!training) {
    const Tensor mean = Reshape(running_mean, dims), variance = Reshape(running_var, dims);
    return Affine((x - mean) * Rsqrt(variance + eps), weight, bias, dims);
  }
  const int64_t count = x.dim(1) == 0 ? 0 : x.shape().num_elements() / x.dim(1);
  if (count < 2) {
    ThrowRecordError("batch_norm", InvalidArgument("training needs more than one value a channel, "
                                                   "x is ",
                                                   x.shape()));
  }
  const Moments moments = BatchNorm(x, eps);
  if (running) {
    NumberSlots slots;  // momentum's rest changes with it, and compiles nothing either
    const Number rest = Number(1 - momentum.as_double()).OfUser(slots);
    const double unbiased = static_cast<double>(count) / static_cast<double>(count - 1);
    UpdateRunning(running_mean, Detach(moments.mean), momentum, rest);
    UpdateRunning(running_var, Detach(moments.variance) * unbiased, momentum, rest);
  }
  return Affine(moments.y, weight, bias, dims);
}

Tensor LocalResponseNorm(const Tensor& in, int64_t size, double alpha, double beta, double k) {
  if (in.rank() >= 3 && in.shape().num_elements() == 0) return Clone(in);
  const Tensor x = Floating(in);
  if (x.rank() < 3) {
    ThrowRecordError("local_response_norm",
                     InvalidArgument("expects 3D or higher dimensionality input, not ", x.shape()));
  }
  if (size < 1) ThrowRecordError("local_response_norm", InvalidArgument("size must be above 0"));
  // Sums of neighbouring channels, of which no two are further apart than `reach`.
  const int64_t reach = std::max<int64_t>(x.dim(1) - 1, 0);
  const Tensor square = x * x;
  Dims low(static_cast<std::size_t>(x.rank()), 0), high = low;
  const Dims none = low;
  low[1] = std::min(size / 2, reach);
  high[1] = std::min((size - 1) / 2, reach);
  const Tensor padded = PadZeros(square, low, high, none);
  Tensor sum;
  for (int64_t i = 0; i <= low[1] + high[1]; ++i) {
    const Tensor part = Narrow(padded, 1, i, x.dim(1));
    sum = sum.defined() ? sum + part : part;
  }
  return x / PowNumber(sum * (alpha / static_cast<double>(size)) + k, beta);
}

}  // namespace lazuli::lazy
