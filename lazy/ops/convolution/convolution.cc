#include "lazy/ops/convolution/convolution.h"

#include "lazy/ops/linear/matmul.h"
#include "lazy/ops/pool/pool.h"

namespace lazuli::lazy {
namespace {

using hlo::ConvDims;
using hlo::ConvolutionAttrs;
using hlo::WindowDim;

// dim_labels bf01_oi01->bf01.
ConvDims ForwardDims() {
  ConvDims d;
  d.input_batch = 0, d.input_feature = 1, d.input_spatial = {2, 3};
  d.kernel_output_feature = 0, d.kernel_input_feature = 1, d.kernel_spatial = {2, 3};
  d.output_batch = 0, d.output_feature = 1, d.output_spatial = {2, 3};
  return d;
}

}  // namespace

absl::StatusOr<Shape> Conv2dOp::Infer(const Shape& x, const Shape& weight) const {
  if (x.rank() != 4 || weight.rank() != 4) {
    return InvalidArgument("takes x [N, C, H, W] and weight [O, C / groups, kh, kw], not ", x,
                           " and ", weight);
  }
  if (groups < 1 || x.dim(1) != weight.dim(1) * groups || weight.dim(0) % groups != 0) {
    return InvalidArgument("channels of x ", x, " do not fit weight ", weight, " with groups ",
                           groups);
  }
  LAZULI_RETURN_IF_ERROR(CheckFactors(x, weight));
  Dims dims{x.dim(0), weight.dim(0)};
  for (std::size_t i = 0; i < 2; ++i) {
    const int64_t d = static_cast<int64_t>(i) + 2;
    const auto [least, most] = std::minmax({stride[i], dilation[i], padding[i]});
    if (stride[i] < 1 || dilation[i] < 1 || least < 0 || most > Shape::kMaxBytes) {
      return InvalidArgument("stride ", PairText(stride), ", padding ", PairText(padding),
                             ", dilation ", PairText(dilation),
                             ": strides and dilations start at 1, padding at 0, and none is above ",
                             Shape::kMaxBytes);
    }
    const int64_t span = x.dim(d) + 2 * padding[i], steps = weight.dim(d) - 1;
    const bool fits = steps <= 0 || dilation[i] <= span / steps;
    const int64_t room = fits ? span - (steps * dilation[i] + 1) : -1;
    if (room < 0)
      return InvalidArgument("kernel of weight ", weight, " is larger than the padded input ", x);
    dims.push_back(room / stride[i] + 1);
  }
  return Shape::Make(x.dtype(), dims);
}

lowering::Op Conv2dOp::Lower(lowering::Builder& b, lowering::Op x, lowering::Op weight) const {
  ConvolutionAttrs attrs;
  attrs.dim_labels = ForwardDims();
  attrs.feature_group_count = groups;
  for (std::size_t i = 0; i < 2; ++i) {
    attrs.window.push_back(WindowDim{.size = weight.shape().dim(static_cast<int64_t>(i) + 2),
                                     .stride = stride[i],
                                     .pad_low = padding[i],
                                     .pad_high = padding[i],
                                     .window_dilation = dilation[i]});
  }
  return b.Convolution(x, weight, std::move(attrs));
}

Tensors Conv2dOp::Vjp(const Saved& s, const Tensor& dy) const {
  Tensors grads(2);
  const Shape& x = s.shape(0);
  const Shape& w = s.shape(1);
  if (s.needs(0))
    grads[0] = Record(Conv2dInputGradOp{stride, padding, dilation, groups, {x.dim(2), x.dim(3)}},
                      dy, Conj(s.x(1)));
  if (s.needs(1))
    grads[1] = Record(Conv2dWeightGradOp{stride, padding, dilation, groups, {w.dim(2), w.dim(3)}},
                      Conj(s.x(0)), dy);
  return grads;
}

// dx = dy, spread by the stride, convolved with the kernel flipped in space and with its feature
// dims swapped.
lowering::Op Conv2dInputGradOp::Lower(lowering::Builder& b, lowering::Op dy,
                                      lowering::Op weight) const {
  const Shape w = weight.shape();
  ConvolutionAttrs attrs;
  attrs.dim_labels = ForwardDims();
  attrs.feature_group_count = groups;
  attrs.dim_labels.kernel_input_feature = 0;
  attrs.dim_labels.kernel_output_feature = 1;
  for (std::size_t i = 0; i < 2; ++i) {
    const int64_t d = static_cast<int64_t>(i) + 2;
    const int64_t reach = (w.dim(d) - 1) * dilation[i];
    const int64_t spread = (dy.shape().dim(d) - 1) * stride[i] + 1;
    const int64_t low = reach - padding[i];
    attrs.window.push_back(WindowDim{.size = w.dim(d),
                                     .pad_low = low,
                                     .pad_high = size[i] - spread - low + reach,
                                     .base_dilation = stride[i],
                                     .window_dilation = dilation[i]});
  }
  if (groups > 1) {  // [g * o, i, kh, kw] -> [o, g * i, kh, kw]
    const int64_t o = w.dim(0) / groups, in = w.dim(1);
    weight = b.Reshape(weight, {groups, o, in, w.dim(2), w.dim(3)});
    weight = b.Transpose(weight, {1, 0, 2, 3, 4});
    weight = b.Reshape(weight, {o, groups * in, w.dim(2), w.dim(3)});
  }
  return b.Convolution(dy, b.Reverse(weight, {2, 3}), std::move(attrs));
}

Tensors Conv2dInputGradOp::Vjp(const Saved& s, const Tensor& g) const {
  const Shape& w = s.shape(1);
  Tensors grads(2);
  if (s.needs(0)) grads[0] = Record(Conv2dOp{stride, padding, dilation, groups}, g, Conj(s.x(1)));
  if (s.needs(1))
    grads[1] = Record(Conv2dWeightGradOp{stride, padding, dilation, groups, {w.dim(2), w.dim(3)}},
                      g, Conj(s.x(0)));
  return grads;
}

// dw = x convolved with dy as its kernel: batch is what is summed over, so batch and feature swap
// roles.
lowering::Op Conv2dWeightGradOp::Lower(lowering::Builder& b, lowering::Op x,
                                       lowering::Op dy) const {
  ConvolutionAttrs attrs;
  ConvDims& d = attrs.dim_labels;
  d.input_batch = 1, d.input_feature = 0, d.input_spatial = {2, 3};
  d.kernel_input_feature = 0, d.kernel_output_feature = 1, d.kernel_spatial = {2, 3};
  d.output_batch = 1, d.output_feature = 0, d.output_spatial = {2, 3};
  attrs.batch_group_count = groups;
  for (std::size_t i = 0; i < 2; ++i) {
    const int64_t dim = static_cast<int64_t>(i) + 2;
    const int64_t spread = (dy.shape().dim(dim) - 1) * stride[i] + 1;
    attrs.window.push_back(WindowDim{
        .size = dy.shape().dim(dim),
        .stride = dilation[i],
        .pad_low = padding[i],
        .pad_high = (size[i] - 1) * dilation[i] + spread - x.shape().dim(dim) - padding[i],
        .window_dilation = stride[i]});
  }
  return b.Convolution(x, dy, std::move(attrs));
}

Tensors Conv2dWeightGradOp::Vjp(const Saved& s, const Tensor& g) const {
  const Shape& x = s.shape(0);
  Tensors grads(2);
  if (s.needs(0))
    grads[0] = Record(Conv2dInputGradOp{stride, padding, dilation, groups, {x.dim(2), x.dim(3)}},
                      Conj(s.x(1)), g);
  if (s.needs(1)) grads[1] = Record(Conv2dOp{stride, padding, dilation, groups}, Conj(s.x(0)), g);
  return grads;
}

namespace {

// The zeros around x that keep its size. An odd number of them is one more behind, which x gets.
std::pair<Tensor, Pair> PaddedAsX(const Tensor& x, const Tensor& weight,
                                  const Conv2dOptions& options) {
  if (options.stride != Pair{1, 1}) {
    ThrowRecordError("conv2d", InvalidArgument("padding \"same\" takes strides of 1, not ",
                                               options.stride[0], " and ", options.stride[1]));
  }
  Pair padding;
  Dims more(4, 0);
  for (std::size_t i = 0; i < 2; ++i) {
    const int64_t all = options.dilation[i] * (weight.dim(static_cast<int64_t>(i) + 2) - 1);
    padding[i] = all / 2;
    more[i + 2] = all % 2;
  }
  const Dims none(4, 0);
  return {more == none ? x : PadZeros(x, none, more, none), padding};
}

}  // namespace

Tensor Conv2d(const Tensor& in, const Tensor& weight, const Tensor& bias,
              const Conv2dOptions& options) {
  if (in.rank() == 3 && weight.rank() == 4)  // one image
    return Squeeze(Conv2d(Unsqueeze(in, 0), weight, bias, options), 0);
  if (bias.defined() && weight.rank() == 4) CheckBias("conv2d", "channels", bias, weight);
  if (bias.defined() && bias.dtype() != in.dtype()) {
    ThrowRecordError("conv2d", InvalidArgument("dtypes of x ", in.shape(), " and bias ",
                                               bias.shape(), " differ; convert one with to()"));
  }
  const bool same = options.padding.same && in.rank() == 4 && weight.rank() == 4;
  const auto [x, padding] =
      same ? PaddedAsX(in, weight, options) : std::pair(in, options.padding.size);
  const Tensor y =
      Record(Conv2dOp{options.stride, padding, options.dilation, options.groups}, x, weight);
  return bias.defined() ? y + Reshape(bias, {1, bias.dim(0), 1, 1}) : y;
}

Tensor Conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, int64_t stride,
              ConvPadding padding, int64_t dilation, int64_t groups) {
  if (weight.rank() != 3)
    ThrowRecordError("conv1d",
                     InvalidArgument("takes weight [O, C / groups, k], not ", weight.shape()));
  if (padding.size[0] != padding.size[1]) {
    ThrowRecordError("conv1d", InvalidArgument("takes one padding, not ", padding.size[0], " and ",
                                               padding.size[1]));
  }
  padding.size[0] = 0;
  const Conv2dOptions options{{1, stride}, padding, {1, dilation}, groups};
  return Squeeze(Conv2d(AsImage("conv1d", x), Unsqueeze(weight, -2), bias, options), -2);
}

}  // namespace lazuli::lazy
