#include "lazy/ops/norm.h"

#include <numeric>

#include "lazy/ops/wide.h"

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

double Count(const Shape& x, const Dims& dims) {
  int64_t count = 1;
  for (int64_t d : dims) count *= x.dim(d);
  return static_cast<double>(count);
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
    return b.DividedBy(sum, b.Full(sum.shape(), Count(shape, dims)));
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
  const double count = Count(shape, dims);
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
  return Reshape(LayerNorm(Reshape(x, {x.dim(0), groups, -1}), 2, eps), x.shape().dims());
}

Tensor RmsNorm(const Tensor& in, int64_t axis, double eps) {
  const Tensor x = Floating(in);
  const Dims dims = DimsFrom(NormalizeDim("rms_norm", axis, x.rank()), x.rank());
  return InWide(x, [&](const Tensor& wide) {
    return wide * Rsqrt(Mean(wide * wide, dims, /*keepdim=*/true) + eps);
  });
}

}  // namespace lazuli::lazy
