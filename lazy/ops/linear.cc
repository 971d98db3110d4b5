#include "lazy/ops/linear.h"

#include <algorithm>

#include "ir/hlo/monoid.h"
#include "ir/support/wrong_type.h"
#include "lazy/ops/elementwise.h"

namespace lazuli::lazy {
namespace {

using hlo::ConvDims;
using hlo::ConvolutionAttrs;
using hlo::WindowDim;

absl::StatusOr<Shape> MatMulShape(const Shape& x, const Shape& y) {
  if (x.rank() < 2 || y.rank() < 2)
    return InvalidArgument("operands must have rank 2 or more: ", x, " x ", y);
  if (x.dim(x.rank() - 1) != y.dim(y.rank() - 2))
    return InvalidArgument("inner dimensions differ: ", x, " x ", y);
  const std::optional<DType> dtype = Promote(x.dtype(), y.dtype());
  if (!dtype)
    return InvalidArgument("dtypes of ", x, " and ", y,
                           " have no common type; convert one with to()");
  Dims dims;
  if (x.rank() > 2 || y.rank() > 2) {
    const Shape bx(*dtype, x.dims().first(static_cast<std::size_t>(x.rank() - 2)));
    const Shape by(*dtype, y.dims().first(static_cast<std::size_t>(y.rank() - 2)));
    absl::StatusOr<Dims> batch = BroadcastDims(bx, by);
    if (!batch.ok()) return InvalidArgument("batch dims do not broadcast: ", x, " x ", y);
    dims = *batch;
  }
  dims.push_back(x.dim(x.rank() - 2));
  dims.push_back(y.dim(y.rank() - 1));
  return Shape::Make(*dtype, dims);
}

lowering::Op WithBatch(lowering::Builder& b, lowering::Op x, absl::Span<const int64_t> batch) {
  Dims dims(batch.begin(), batch.end());
  dims.push_back(x.shape().dim(x.rank() - 2));
  dims.push_back(x.shape().dim(x.rank() - 1));
  return b.BroadcastTo(x, dims);
}

// dim_labels bf01_oi01->bf01.
ConvDims ForwardDims() {
  ConvDims d;
  d.input_batch = 0, d.input_feature = 1, d.input_spatial = {2, 3};
  d.kernel_output_feature = 0, d.kernel_input_feature = 1, d.kernel_spatial = {2, 3};
  d.output_batch = 0, d.output_feature = 1, d.output_spatial = {2, 3};
  return d;
}

}  // namespace

std::string PairText(const Pair& p) { return Str(p[0], "x", p[1]); }

absl::StatusOr<Shape> MatMulOp::Infer(const Shape& x, const Shape& y) const {
  return MatMulShape(x, y);
}

lowering::Op MatMulOp::Lower(lowering::Builder& b, lowering::Op x, lowering::Op y) const {
  absl::StatusOr<Shape> shape = MatMulShape(x.shape(), y.shape());
  if (!shape.ok()) return b.Error(shape.status());
  const auto batch = shape->dims().first(static_cast<std::size_t>(shape->rank() - 2));
  x = WithBatch(b, b.Convert(x, shape->dtype()), batch);
  y = WithBatch(b, b.Convert(y, shape->dtype()), batch);
  hlo::DotAttrs attrs;
  const int64_t n = shape->rank() - 2;
  for (int64_t i = 0; i < n; ++i) {
    attrs.lhs_batch_dims.push_back(i);
    attrs.rhs_batch_dims.push_back(i);
  }
  attrs.lhs_contracting_dims = {n + 1};
  attrs.rhs_contracting_dims = {n};
  return b.Dot(x, y, std::move(attrs));
}

Tensors MatMulOp::Vjp(const Saved& s, const Tensor& dy) const {
  Tensors grads(2);
  if (s.needs(0)) {
    const Tensor y = Conj(s.x(1));
    grads[0] = SumToShape(Matmul(dy, Transpose(y, -1, -2)), s.shape(0));
  }
  if (s.needs(1)) {
    const Tensor x = Conj(s.x(0));
    grads[1] = SumToShape(Matmul(Transpose(x, -1, -2), dy), s.shape(1));
  }
  return grads;
}

absl::Status CheckFactors(const Shape& x, const Shape& y) {
  if (x.dtype() != y.dtype()) {
    return WrongType("takes operands of one dtype, not ", x, " and ", y, "; convert one with to()");
  }
  if (x.dtype() != DType::kPred) return absl::OkStatus();
  return WrongType("takes numbers, not ", x, " and ", y, "; convert them with to()");
}
void CheckFactors(std::string_view op, const Tensor& x, const Tensor& y) {
  if (const absl::Status s = CheckFactors(x.shape(), y.shape()); !s.ok()) ThrowRecordError(op, s);
}

Tensor Matmul(const Tensor& x, const Tensor& y) {
  if (!x.defined() || !y.defined())
    ThrowRecordError("matmul",
                     InvalidArgument("operand ", x.defined() ? 1 : 0, " is an undefined tensor"));
  if (x.rank() == 0 || y.rank() == 0) {
    ThrowRecordError("matmul", InvalidArgument("operands must have rank 1 or more: ", x.shape(),
                                               " x ", y.shape()));
  }
  CheckFactors("matmul", x, y);
  if (x.rank() >= 2 && y.rank() >= 2) return Record(MatMulOp{}, x, y);
  if (x.dim(x.rank() - 1) != y.dim(std::max<int64_t>(y.rank() - 2, 0))) {
    ThrowRecordError("matmul",
                     InvalidArgument("inner dimensions differ: ", x.shape(), " x ", y.shape()));
  }
  const Tensor r =
      Record(MatMulOp{}, x.rank() == 1 ? Unsqueeze(x, 0) : x, y.rank() == 1 ? Unsqueeze(y, 1) : y);
  const Tensor rows = x.rank() == 1 ? Squeeze(r, -2) : r;
  return y.rank() == 1 ? Squeeze(rows, -1) : rows;
}

Tensor Outer(const Tensor& x, const Tensor& y) {
  if (x.rank() != 1 || y.rank() != 1) {
    ThrowRecordError("outer",
                     InvalidArgument("takes vectors, not ", x.shape(), " and ", y.shape()));
  }
  return Unsqueeze(x, 1) * Unsqueeze(y, 0);
}

lowering::Op LinearOp::Lower(lowering::Builder& b, lowering::Op x, lowering::Op weight) const {
  const Shape &xs = x.shape(), &ws = weight.shape();
  if (xs.rank() < 1 || ws.rank() != 2 || xs.dim(xs.rank() - 1) != ws.dim(1))
    return b.Error(InvalidArgument("x ", xs, " does not fit weight ", ws, " [out, in]"));
  const std::optional<DType> dtype = Promote(xs.dtype(), ws.dtype());
  if (!dtype)
    return b.Error(InvalidArgument("dtypes of ", xs, " and ", ws,
                                   " have no common type; convert one with to()"));
  hlo::DotAttrs attrs;
  attrs.lhs_contracting_dims = {xs.rank() - 1};
  attrs.rhs_contracting_dims = {1};
  return b.Dot(b.Convert(x, *dtype), b.Convert(weight, *dtype), std::move(attrs));
}

Tensors LinearOp::Vjp(const Saved& s, const Tensor& dy) const {
  // A count, not -1, which nothing can be found for where a row has no elements.
  const auto rows = [](const Tensor& t) {
    int64_t count = 1;
    for (int64_t d = 0; d + 1 < t.rank(); ++d) count *= t.dim(d);
    return Reshape(t, {count, t.dim(t.rank() - 1)});
  };
  Tensors grads(2);
  if (s.needs(0)) grads[0] = Record(LinearOp{}, dy, Transpose(Conj(s.x(1)), 0, 1));
  if (s.needs(1)) grads[1] = Matmul(Transpose(rows(dy), 0, 1), rows(Conj(s.x(0))));
  return grads;
}

namespace {
// A bias has one number for each row, or channel, of the weight.
void CheckBias(std::string_view op, std::string_view what, const Tensor& bias,
               const Tensor& weight) {
  if (bias.rank() == 1 && bias.dim(0) == weight.dim(0)) return;
  ThrowRecordError(op, InvalidArgument("bias ", bias.shape(), " does not fit the ", weight.dim(0),
                                       " ", what, " of weight ", weight.shape()));
}
}  // namespace

Tensor Linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  CheckFactors("linear", x, weight);
  if (weight.rank() == 1 && x.rank() > 0 && !bias.defined()) return Matmul(x, weight);
  if (!bias.defined()) return Record(LinearOp{}, x, weight);
  CheckFactors("linear", x, bias);
  if (weight.rank() == 2) CheckBias("linear", "rows", bias, weight);
  return Record(LinearOp{}, x, weight) + bias;
}

// --- convolution

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
    if (stride[i] < 1 || dilation[i] < 1 || padding[i] < 0) {
      return InvalidArgument("stride ", PairText(stride), ", padding ", PairText(padding),
                             ", dilation ", PairText(dilation),
                             ": strides and dilations start at 1, padding at 0");
    }
    const int64_t room = x.dim(d) + 2 * padding[i] - ((weight.dim(d) - 1) * dilation[i] + 1);
    if (room < 0)
      return InvalidArgument("kernel of weight ", weight, " is larger than the padded input ", x);
    dims.push_back(room / stride[i] + 1);
  }
  return Shape(x.dtype(), dims);
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

}  // namespace lazuli::lazy
