// What PyTorch's normalisations are made of: they give the statistics, too.
#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/normalization/normalization.h"

namespace lazuli::lazy {
namespace {

// The statistics, which are of f32 at least, in the dtype of the weights or of the result.
std::tuple<Tensor, Tensor, Tensor> NormResults(const Tensor& y, const Tensor& mean,
                                               const Tensor& variance, const Tensor& weight,
                                               double eps) {
  const DType dtype = (weight.defined() ? weight : y).dtype();
  return {y, To(mean, dtype), To(Rsqrt(variance + eps), dtype)};
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> NativeLayerNorm(const Tensor& x,
                                                   absl::Span<const int64_t> normalized_shape,
                                                   const Tensor& weight, const Tensor& bias,
                                                   double eps) {
  const Tensor y = LayerNorm(x, normalized_shape, weight, bias, eps);  // with the checks
  const int64_t axis = x.rank() - static_cast<int64_t>(normalized_shape.size());
  const Operand in(x);
  const Tensors moments = RecordAll(LayerNormOp{axis, eps}, absl::MakeConstSpan(&in, 1));
  Dims dims = DimsOf(x.shape());
  for (int64_t d = axis; d < x.rank(); ++d) dims[At(d)] = 1;
  return NormResults(y, Reshape(moments[1], dims), Reshape(moments[2], dims), weight, eps);
}

std::tuple<Tensor, Tensor, Tensor> NativeGroupNorm(const Tensor& x, const Tensor& weight,
                                                   const Tensor& bias, int64_t N, int64_t C,
                                                   int64_t HxW, int64_t group, double eps) {
  constexpr char kOp[] = "native_group_norm";
  if (x.rank() < 2 || x.dim(0) != N || x.dim(1) != C || x.shape().num_elements() != N * C * HxW ||
      group < 1 || C % group != 0) {
    ThrowRecordError(
        kOp, InvalidArgument("takes x [", N, ", ", C, ", ...] with ", HxW,
                             " other elements, in groups that divide the channels, not ", x.shape(),
                             " in ", group));
  }
  const Tensor y = GroupNorm(x, group, weight, bias, eps);
  const Tensor rows = Reshape(x, {N, group, C / group * HxW});
  const Operand in(rows);
  const Tensors moments = RecordAll(LayerNormOp{2, eps}, absl::MakeConstSpan(&in, 1));
  const Dims dims{N, group};
  return NormResults(y, Reshape(moments[1], dims), Reshape(moments[2], dims), weight, eps);
}

std::tuple<Tensor, Tensor, Tensor> NativeBatchNorm(const Tensor& x, const Tensor& weight,
                                                   const Tensor& bias, const Tensor& running_mean,
                                                   const Tensor& running_var, bool training,
                                                   const Number& momentum, double eps) {
  const bool given = running_mean.defined() && running_var.defined();
  const Tensor y =
      BatchNorm(x, running_mean, running_var, weight, bias, training || !given, momentum, eps);
  if (!training) {
    const Tensor none = FullConstant(Shape(x.dtype(), {0}), 0, x.device());
    return {y, none, none};
  }
  const Moments moments = BatchNorm(x, eps);
  return NormResults(y, moments.mean, moments.variance, weight, eps);
}

}  // namespace lazuli::lazy
